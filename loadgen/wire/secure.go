package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
)

// recordMax bounds the requests sealed into one TLS record, in bytes: larger
// ones are split by the protocol anyway.
const recordMax = 16 << 10

// secure is a TLS connection whose writes never block: what TLS wants to write
// is gathered, and the sender writes it when the socket takes it.
type secure struct {
	*tls.Conn
	under *gather
}

// gather is the connection under TLS. Until the handshake is over its writes
// go to the socket.
type gather struct {
	*net.TCPConn

	mu     sync.Mutex // the reader may answer a key update while the sender seals
	shaken bool
	out    []byte
}

// newSecure shakes hands. Errors wrap ErrTLS unless the connection itself
// broke.
func newSecure(ctx context.Context, conn *net.TCPConn, cfg *tls.Config) (*secure, error) {
	s := &secure{under: &gather{TCPConn: conn}}
	s.Conn = tls.Client(s.under, cfg)
	if err := s.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	s.under.mu.Lock()
	s.under.shaken = true
	s.under.mu.Unlock()
	return s, nil
}

// Write gathers b once the handshake is over.
func (g *gather) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shaken {
		return g.TCPConn.Write(b)
	}
	g.out = append(g.out, b...)
	return len(b), nil
}

// take moves what was gathered to dst.
func (g *gather) take(dst []byte) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	dst = append(dst, g.out...)
	g.out = g.out[:0]
	return dst
}

// seal replaces the pending requests, the last n, by the records that carry
// them. A request begins where its record does: once a byte of the record was
// written, it counts as sent.
func (c *Conn) seal(s *secure, n int) error {
	plain, sealed := c.pending, c.sealed[:0]
	end := func(i uint64) int {
		if i+1 == c.head {
			return len(plain)
		}
		return c.ring[(i+1)&c.mask].start
	}
	for i := c.head - uint64(n); i < c.head; {
		from, record := c.ring[i&c.mask].start, len(sealed)
		to := from
		for ; i < c.head && (to == from || end(i)-from <= recordMax); i++ {
			to = end(i)
			c.ring[i&c.mask].start = record
		}
		if _, err := s.Write(plain[from:to]); err != nil {
			return fmt.Errorf("seal requests: %w", err)
		}
		sealed = s.under.take(sealed)
	}
	c.pending, c.sealed = sealed, plain
	return nil
}
