package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/openapi"
	"github.com/hotsku/hotsku/system/seckill"
)

// Gate refuses what is known to be sold out, and knows what is on sale.
type Gate interface {
	Refuses(activityID, skuID, userID int64) bool
	Knows(activityID, skuID int64) bool
}

// Submitter takes what was admitted. Refuses is the reason why nothing can be
// taken now, "" if it can; asked once a request. Submit follows a TryAcquire
// that returned true.
type Submitter interface {
	Refuses() string
	TryAcquire() bool
	Submit(cmd seckill.SubmitCommand, to submit.Replier)
}

// Params of New.
type Params struct {
	Config Config
	Keys   []seckill.TokenKey // a token may be signed by any of them
	Gate   Gate
	Submit Submitter
	Log    *slog.Logger
	// Now tells whether a token has expired, and nothing else: whether an
	// activity is open is for Redis to say. Nil: time.Now.
	Now func() time.Time
}

// Server is the edge.
type Server struct {
	cfg      Config
	keys     []seckill.TokenKey
	gate     Gate
	submit   Submitter
	log      *slog.Logger
	now      func() time.Time
	limits   *admission.Limits
	document []byte
	began    time.Time // monotonic reference of limits and durations

	Stats Stats

	draining atomic.Bool
	mu       sync.Mutex
	conns    map[*conn]struct{}
	serving  sync.WaitGroup
	listener net.Listener
}

// New returns a server.
func New(p Params) (*Server, error) {
	if p.Gate == nil || p.Submit == nil || p.Log == nil {
		return nil, errors.New("access: gate, submit and log are required")
	}
	if err := p.Config.Validate(); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	if _, err := seckill.NewTokenCodec(p.Keys...); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	cfg := p.Config.withDefaults()
	limits, err := admission.NewLimits(cfg.Limits, cfg.Without)
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	return &Server{cfg: cfg, keys: p.Keys, gate: p.Gate, submit: p.Submit, log: p.Log, now: p.Now,
		limits: limits, document: documentResponse(openapi.Document), began: time.Now(), conns: make(map[*conn]struct{})}, nil
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
		if s.handshake(nc) {
			c.serve()
		}
		_ = nc.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.Stats.Connections.Add(-1)
	}()
}

// handshake makes a TLS connection's, in bounded time.
func (s *Server) handshake(nc net.Conn) bool {
	secure, ok := nc.(*tls.Conn)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.RequestTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		s.log.Debug("TLS handshake", "error", err)
		return false
	}
	return true
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
