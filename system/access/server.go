package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/seckill"
)

// Path is the endpoint for orders.
const Path = "/v1/seckill/orders"

// Config bounds the edge. Zero fields take ConfigDefault's.
type Config struct {
	Connections    int           // at once; one more is closed
	HeadLimitBytes int           // request line and headers; also the read buffer
	BodyLimitBytes int           // request body
	IdleTimeout    time.Duration // between requests
	RequestTimeout time.Duration // from a request's first byte to its last
	WriteTimeout   time.Duration // one write to a slow reader
}

// ConfigDefault bounds a connection to a few hundred kilobytes.
var ConfigDefault = Config{Connections: 4096, HeadLimitBytes: 16 << 10, BodyLimitBytes: 4 << 10,
	IdleTimeout: 75 * time.Second, RequestTimeout: 10 * time.Second, WriteTimeout: 5 * time.Second}

func (c Config) withDefaults() Config {
	d := ConfigDefault
	if c.Connections != 0 {
		d.Connections = c.Connections
	}
	if c.HeadLimitBytes != 0 {
		d.HeadLimitBytes = c.HeadLimitBytes
	}
	if c.BodyLimitBytes != 0 {
		d.BodyLimitBytes = c.BodyLimitBytes
	}
	if c.IdleTimeout != 0 {
		d.IdleTimeout = c.IdleTimeout
	}
	if c.RequestTimeout != 0 {
		d.RequestTimeout = c.RequestTimeout
	}
	if c.WriteTimeout != 0 {
		d.WriteTimeout = c.WriteTimeout
	}
	return d
}

// Gate refuses what is known to be sold out.
type Gate interface {
	Refuses(activityID, skuID, userID int64) bool
}

// Submitter takes what was admitted. Submit follows a TryAcquire that
// returned true.
type Submitter interface {
	TryAcquire() bool
	Submit(cmd seckill.SubmitCommand, to submit.Replier)
}

// Stats counts answers by code and what each stage let through. Safe to read
// at any time.
type Stats struct {
	Connections   atomic.Int64 // open now
	Requests      atomic.Int64 // parsed, and cut off while being parsed
	Authenticated atomic.Int64 // past the eligibility token
	PastGate      atomic.Int64 // past the sold-out gate
	Answers       [256]atomic.Int64
}

// Server is the edge.
type Server struct {
	cfg    Config
	keys   []seckill.TokenKey
	gate   Gate
	submit Submitter
	log    *slog.Logger

	Stats Stats

	draining atomic.Bool
	mu       sync.Mutex
	conns    map[*conn]struct{}
	serving  sync.WaitGroup
	listener net.Listener
}

// New returns a server that takes tokens signed by any of keys.
func New(cfg Config, keys []seckill.TokenKey, gate Gate, sub Submitter, log *slog.Logger) (*Server, error) {
	if _, err := seckill.NewTokenCodec(keys...); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	return &Server{cfg: cfg.withDefaults(), keys: keys, gate: gate, submit: sub, log: log,
		conns: make(map[*conn]struct{})}, nil
}

// Serve accepts connections until Shutdown; it then returns nil.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.listener = ln
	s.mu.Unlock()
	for {
		nc, err := ln.Accept()
		if err != nil {
			if s.draining.Load() || errors.Is(err, net.ErrClosed) {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() { // out of descriptors: others may end
				s.log.Warn("accept", "error", err)
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return fmt.Errorf("accept: %w", err)
		}
		s.start(nc)
	}
}

func (s *Server) start(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() || len(s.conns) >= s.cfg.Connections {
		_ = nc.Close()
		return
	}
	codec, err := seckill.NewTokenCodec(s.keys...)
	if err != nil { // New has checked the keys
		s.log.Error("token codec", "error", err)
		_ = nc.Close()
		return
	}
	c := newConn(s, nc, codec)
	s.conns[c] = struct{}{}
	s.Stats.Connections.Add(1)
	s.serving.Add(1)
	go func() {
		defer s.serving.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.Stats.Connections.Add(-1)
	}()
}

// Shutdown stops accepting, answers what was received, closes connections as
// they fall idle, and at ctx's end closes the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.mu.Lock()
	if s.listener != nil {
		_ = s.listener.Close()
	}
	for c := range s.conns {
		c.drain()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.conns {
			c.abort()
		}
		s.mu.Unlock()
		<-done
		return fmt.Errorf("access: connections were cut off: %w", ctx.Err())
	}
}
