package admission

import (
	"bytes"
	"net/netip"
	"unsafe"
)

// forwardedMax bounds how many hops of X-Forwarded-For are looked at.
const forwardedMax = 16

// ClientAddr is the address for which a request is counted: the peer, or, if
// the peer is trusted, the last address in X-Forwarded-For that is not. What
// stands before that one was written by nobody who is trusted. forwarded are
// the header's values in their order. Without errors it does not allocate.
func ClientAddr(peer netip.Addr, trusted []netip.Prefix, forwarded [][]byte) netip.Addr {
	client := peer.Unmap()
	hops := 0
	for i := len(forwarded) - 1; i >= 0; i-- {
		for rest, more := forwarded[i], true; more; {
			if hops++; hops > forwardedMax || !contains(trusted, client) {
				return client
			}
			var hop []byte
			if at := bytes.LastIndexByte(rest, ','); at >= 0 {
				rest, hop = rest[:at], rest[at+1:]
			} else {
				hop, more = rest, false
			}
			addr, ok := parseHop(bytes.TrimSpace(hop))
			if !ok {
				return client // the trusted hop that wrote it
			}
			client = addr
		}
	}
	return client
}

// parseHop reads an address, with a port if a proxy adds one.
func parseHop(hop []byte) (netip.Addr, bool) {
	s := unsafe.String(unsafe.SliceData(hop), len(hop)) // kept by no netip.Addr: zones are refused
	if bytes.IndexByte(hop, '%') >= 0 {
		return netip.Addr{}, false
	}
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Unmap(), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), true
	}
	return netip.Addr{}, false
}

// Trusted says whether peer is one of trusted.
func Trusted(peer netip.Addr, trusted []netip.Prefix) bool { return contains(trusted, peer.Unmap()) }

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
