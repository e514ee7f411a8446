package admission

import (
	"net/netip"
	"strings"
	"testing"
)

// Contracts 1: the address comes from X-Forwarded-For of trusted peers only.
func TestClientAddr(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for rule, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no header":                  {"10.0.0.1", nil, "10.0.0.1"},
		"a peer that is not trusted": {"192.0.2.9", []string{"198.51.100.1"}, "192.0.2.9"},
		"one hop":                    {"10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		"what the client forged stands before its own": {"10.0.0.1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"trusted hops are passed over":                 {"10.0.0.1", []string{"198.51.100.1, 10.0.0.7,10.0.0.8"}, "198.51.100.1"},
		"headers are one list":                         {"10.0.0.1", []string{"1.1.1.1, 198.51.100.1", "10.0.0.7"}, "198.51.100.1"},
		"only trusted hops":                            {"10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"IPv6":                                         {"fd00::1", []string{"2001:db8::5"}, "2001:db8::5"},
		"an IPv4 peer in IPv6 form":                    {"::ffff:10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		"a port":                                       {"10.0.0.1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"an IPv6 port":                                 {"10.0.0.1", []string{"[2001:db8::5]:4711"}, "2001:db8::5"},
		"nonsense is the trusted hop that wrote it":    {"10.0.0.1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"nonsense before a trusted hop":                {"10.0.0.1", []string{"unknown, 10.0.0.2"}, "10.0.0.2"},
		"a zone":                                       {"10.0.0.1", []string{"fe80::1%eth0"}, "10.0.0.1"},
		"an empty list":                                {"10.0.0.1", []string{""}, "10.0.0.1"},
		"far too many hops":                            {"10.0.0.1", []string{"198.51.100.1," + strings.Repeat("10.0.0.2,", 40) + "10.0.0.3"}, "10.0.0.2"},
	} {
		var values [][]byte
		for _, v := range c.forwarded {
			values = append(values, []byte(v))
		}
		if got := ClientAddr(netip.MustParseAddr(c.peer), trusted, values); got.String() != c.want {
			t.Errorf("%s: %s, want %s", rule, got, c.want)
		}
	}
	values := [][]byte{[]byte("198.51.100.1, 10.0.0.7")}
	if n := testing.AllocsPerRun(100, func() { ClientAddr(netip.MustParseAddr("10.0.0.1"), trusted, values) }); n != 0 {
		t.Errorf("%.1f allocations", n)
	}
}

func FuzzClientAddr(f *testing.F) {
	f.Add("198.51.100.1, 10.0.0.7", true)
	f.Add("[::1]:5,,%", false)
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, header string, fromTrusted bool) {
		peer := netip.MustParseAddr("192.0.2.1")
		if fromTrusted {
			peer = netip.MustParseAddr("10.0.0.1")
		}
		got := ClientAddr(peer, trusted, [][]byte{[]byte(header)})
		if !got.IsValid() || !fromTrusted && got != peer {
			t.Fatalf("%v says %q: %v", peer, header, got)
		}
	})
}
