package stack

import (
	"context"
	"net"
	"time"
)

// probeTimeout bounds one look at a starting server.
const probeTimeout = time.Second

// dial connects for one look: the connection's deadline is set.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	deadline := time.Now().Add(probeTimeout)
	d := net.Dialer{Deadline: deadline}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
