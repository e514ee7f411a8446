package access

import (
	"net/netip"
	"testing"

	"github.com/hotsku/hotsku/system/admission"
)

// R12.6 R8.3.1: the trace context of a gateway goes along with its request;
// nobody else says what is traced, and what is no trace context is none.
func TestOnlyATrustedPeerSaysWhatIsTraced(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	gateway := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		header  string
		want    string
	}{
		"a gateway's":            {gateway, "traceparent: " + trace + "\r\n", trace},
		"none":                   {gateway, "", ""},
		"a client's":             {nil, "Traceparent: " + trace + "\r\n", ""},
		"another peer's":         {[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, "Traceparent: " + trace + "\r\n", ""},
		"too long":               {gateway, "Traceparent: " + trace + "-extra\r\n", ""},
		"of an unknown version":  {gateway, "Traceparent: ff" + trace[2:] + "\r\n", ""},
		"no hex":                 {gateway, "Traceparent: " + trace[:10] + "\t" + trace[11:] + "\r\n", ""},
		"upper case, against it": {gateway, "Traceparent: 00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sub := newHeld()
			_, addr := start(t, Config{Limits: admission.LimitsConfig{TrustedPeers: c.trusted}}, sold{}, sub)
			cl := dial(t, addr)
			cl.send(t, orderWith(1, c.header))
			k := sub.next(t)
			k.queued()
			cl.answer(t)
			if k.cmd.Traceparent != c.want {
				t.Errorf("submitted with trace %q, want %q", k.cmd.Traceparent, c.want)
			}
		})
	}
}

// A trace goes with its own request, not with the next of the connection.
func TestATraceEndsWithItsRequest(t *testing.T) {
	sub := newHeld()
	_, addr := start(t, Config{Limits: admission.LimitsConfig{TrustedPeers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, sold{}, sub)
	cl := dial(t, addr)
	for i, want := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", ""} {
		header := ""
		if want != "" {
			header = "Traceparent: " + want + "\r\n"
		}
		cl.send(t, orderWith(int64(i)+1, header))
		k := sub.next(t)
		k.queued()
		cl.answer(t)
		if k.cmd.Traceparent != want {
			t.Errorf("request %d was submitted with trace %q, want %q", i+1, k.cmd.Traceparent, want)
		}
	}
}
