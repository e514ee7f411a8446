package cli

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/system/admission"
)

// tlsFlags let access and orders serve TLS themselves.
func (o *options) tlsFlags(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.TLS.Cert, "tls-cert", o.cfg.TLS.Cert, "PEM file with the certificate chain to serve TLS with (default: plain HTTP)")
	f.StringVar(&o.cfg.TLS.Key, "tls-key", o.cfg.TLS.Key, "PEM file with its private key")
}

// limitFlags bound what clients may ask of one access process.
func (o *options) limitFlags(f *pflag.FlagSet) {
	c := &o.cfg.Access.Limits
	limit := func(l *admission.Limit, name, whose string) {
		f.TextVar(l, name, *l, "RATE:BURST of "+whose+", or off")
	}
	limit(&c.Process, "process-limit", "the whole process, shed before the token is looked at")
	limit(&c.User, "user-limit", "one user")
	limit(&c.IP, "ip-limit", "one client address")
	limit(&c.Device, "device-limit", "one X-Device-Id")
	f.Var((*prefixes)(&c.TrustedPeers), "trusted-peers", "CIDRs of gateways whose X-Forwarded-For is believed (default: none)")
	f.TextVar(&o.cfg.Access.Without, "without", o.cfg.Access.Without,
		"stages to switch off, for measuring only: "+stages()+"; without token (loopback only) the user is X-User-Id")
}

// stages are the names that --without takes.
func stages() string {
	var names []string
	for _, s := range admission.Stages()[1:] { // the first cannot be
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// prefixes is a flag of CIDRs, separated by commas.
type prefixes []netip.Prefix

func (p *prefixes) String() string {
	texts := make([]string, len(*p))
	for i, prefix := range *p {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}

func (p *prefixes) Set(text string) error {
	var read prefixes
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return fmt.Errorf("%q is no CIDR such as 10.0.0.0/8", part)
		}
		read = append(read, prefix.Masked())
	}
	*p = read
	return nil
}

func (p *prefixes) Type() string { return "CIDRs" }
