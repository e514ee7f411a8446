package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hotsku/hotsku/chaos/frame"
)

// question is the smallest a server of the protocol answers before anybody
// has logged in.
func question(p frame.Protocol) []byte {
	switch p {
	case frame.Redis:
		return []byte("PING\r\n")
	case frame.Postgres: // may the connection be encrypted?
		return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, 80877103)
	}
	// A request that the broker does not know: it says so at once.
	const header = `{"code":32000,"flag":0,"language":"GO","opaque":1,"version":317,"serializeTypeCurrentRPC":"JSON"}`
	b := binary.BigEndian.AppendUint32(nil, 4+uint32(len(header)))
	return append(binary.BigEndian.AppendUint32(b, uint32(len(header))), header...)
}

// Works is nil if a client gets through to the store and is answered now.
func (p *Proxy) Works(ctx context.Context) error {
	if err := p.ask(ctx); err != nil {
		return p.failed(fmt.Errorf("its store does not answer through it: %w", err))
	}
	return nil
}

func (p *Proxy) ask(ctx context.Context) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", p.Addr())
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(question(p.cfg.Protocol)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}
