package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/chaos/frame"
)

// relay accepts clients and carries their bytes to and fro.
type relay struct {
	cfg      Config
	upstream string

	accepted, cuts, toServer, toClient, replies, unread atomic.Int64

	losing atomic.Pointer[Losing]

	mu     sync.Mutex
	where  string       // set by the first accept, then kept
	ln     net.Listener // nil while it refuses
	links  map[*link]struct{}
	closed bool
	ends   sync.WaitGroup
}

func newRelay(cfg Config, upstream string) *relay {
	return &relay{cfg: cfg, upstream: upstream, where: cfg.Listen, links: map[*link]struct{}{}}
}

func (r *relay) addr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.where
}

func (r *relay) counts() Counts {
	r.mu.Lock()
	open := int64(len(r.links))
	r.mu.Unlock()
	return Counts{Connections: r.accepted.Load(), Open: open, Cut: r.cuts.Load(), ToServer: r.toServer.Load(),
		ToClient: r.toClient.Load(), Replies: r.replies.Load(), Unread: r.unread.Load()}
}

func (r *relay) accept() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if r.ln != nil {
		return nil
	}
	ln, err := listen(r.where)
	if err != nil {
		return err
	}
	r.ln, r.where = ln, ln.Addr().String()
	r.ends.Go(func() { r.serve(ln) })
	return nil
}

func (r *relay) serve(ln net.Listener) {
	for {
		client, err := ln.Accept()
		if err != nil {
			return // closed: it refuses from now on
		}
		r.ends.Go(func() { r.carry(client) })
	}
}

// dialTimeout bounds the way to toxiproxy, which is in this process.
const dialTimeout = 5 * time.Second

func (r *relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", r.upstream, dialTimeout)
	if err != nil {
		return
	}
	defer server.Close()
	conversation, err := frame.NewConversation(r.cfg.Protocol)
	if err != nil {
		return // Start has tried
	}
	l := &link{relay: r, client: client, server: server, conversation: conversation}
	if !r.enter(l) {
		return
	}
	defer r.leave(l)
	var up sync.WaitGroup
	up.Go(l.ask)
	l.answer()
	up.Wait()
}

// enter says whether the connection may be carried: one that was accepted
// just before a refusal is not.
func (r *relay) enter(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ln == nil || r.closed {
		return false
	}
	l.number = r.accepted.Add(1)
	r.links[l] = struct{}{}
	return true
}

func (r *relay) leave(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, l)
}

func (r *relay) refuse() int {
	r.mu.Lock()
	if r.ln != nil {
		_ = r.ln.Close()
		r.ln = nil
	}
	r.mu.Unlock()
	return r.cut()
}

func (r *relay) cut() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for l := range r.links {
		if l.cut() {
			n++
		}
	}
	return n
}

func (r *relay) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.refuse()
	r.ends.Wait()
}

// link is one connection, followed.
type link struct {
	*relay
	number         int64
	client, server net.Conn
	gone           atomic.Bool

	mu           sync.Mutex
	conversation frame.Conversation // nil once it was not understood
}

// cut resets the connection and says whether it was still there.
func (l *link) cut() bool {
	if l.gone.Swap(true) {
		return false
	}
	l.cuts.Add(1)
	if tcp, ok := l.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = l.client.Close()
	_ = l.server.Close()
	return true
}

// end closes a connection that one side has ended.
func (l *link) end() {
	l.gone.Store(true)
	_ = l.client.Close()
	_ = l.server.Close()
}

// pieceSize bounds what is carried at a time.
const pieceSize = 32 << 10

// ask carries requests.
func (l *link) ask() {
	defer l.end()
	buf := make([]byte, pieceSize)
	for {
		n, err := l.client.Read(buf)
		if n > 0 {
			l.asked(buf[:n])
			l.toServer.Add(int64(n))
			if _, err := l.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) asked(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conversation == nil {
		return
	}
	if err := l.conversation.Request(p); err != nil {
		l.misunderstood()
	}
}

func (l *link) misunderstood() {
	l.conversation = nil
	l.unread.Add(1)
}

// answer carries replies, up to one that is to be lost.
func (l *link) answer() {
	defer l.end()
	buf := make([]byte, pieceSize)
	for {
		n, err := l.server.Read(buf)
		if n > 0 {
			keep, lost := l.answered(buf[:n])
			l.toClient.Add(int64(keep))
			if _, err := l.client.Write(buf[:keep]); err != nil {
				return
			}
			if lost {
				l.drop()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// drop closes the connection behind what the client already has.
func (l *link) drop() {
	if !l.gone.Swap(true) {
		l.cuts.Add(1)
	}
	_ = l.client.Close()
	_ = l.server.Close()
}

// answered says how much of a piece the client gets, and whether a reply
// behind that is lost.
func (l *link) answered(p []byte) (keep int, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conversation == nil {
		return len(p), false
	}
	replies, err := l.conversation.Reply(p)
	if err != nil {
		defer l.misunderstood()
	}
	losing := l.losing.Load()
	for i := range replies {
		if losing.takes(&replies[i], l) {
			return replies[i].Start, true
		}
		l.replies.Add(1)
	}
	return len(p), false
}
