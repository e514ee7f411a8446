package proxy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hotsku/hotsku/chaos/frame"
)

// Loss says which replies are lost: the connection is closed where such a
// reply begins, so the client never has it, or no more than a torn piece of it
// where it came in pieces. The server has done what it answers.
type Loss struct {
	Match func(*frame.Reply) bool
	From  int64 // the first that is lost, of those that match, counted from 1
	Every int64 // between two that are lost
	Times int64 // so many, all in all
}

// Validate says what is wrong with it.
func (l Loss) Validate() error {
	if l.Match == nil || l.From < 1 || l.Every < 1 || l.Times < 1 {
		return fmt.Errorf("a loss from reply %d on, every %d, %d times: must be positive, of replies that match", l.From, l.Every, l.Times)
	}
	return nil
}

// Losing is a Loss on its way. Safe for concurrent use; a nil one loses
// nothing.
type Losing struct {
	loss Loss

	mu    sync.Mutex
	seen  int64
	lost  []string
	over  bool
	ended chan struct{} // closed with the last
}

// ErrLosing says that a proxy loses replies already.
var ErrLosing = errors.New("loses replies already")

// Lose begins to lose replies, until the Losing is stopped.
func (p *Proxy) Lose(loss Loss) (*Losing, error) {
	if err := loss.Validate(); err != nil {
		return nil, p.failed(err)
	}
	l := &Losing{loss: loss, ended: make(chan struct{})}
	if !p.relay.losing.CompareAndSwap(nil, l) {
		return nil, p.failed(ErrLosing)
	}
	return l, nil
}

// Keep ends what Lose began.
func (p *Proxy) Keep() { p.relay.losing.Store(nil) }

// takes counts a reply and says whether it is lost.
func (l *Losing) takes(r *frame.Reply, by *link) bool {
	if l == nil || !l.loss.Match(r) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen++
	if l.over || l.seen < l.loss.From || (l.seen-l.loss.From)%l.loss.Every != 0 {
		return false
	}
	l.lost = append(l.lost, fmt.Sprintf("%s reply %d on connection %d from %s", r.Request, l.seen, by.number, by.client.RemoteAddr()))
	if int64(len(l.lost)) == l.loss.Times {
		l.over = true
		close(l.ended)
	}
	return true
}

// Ended is closed when the last was lost.
func (l *Losing) Ended() <-chan struct{} { return l.ended }

// Seen is how many replies matched, Lost how many of them were lost.
func (l *Losing) Seen() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// Lost is how many replies were lost.
func (l *Losing) Lost() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.lost))
}

// String says which were lost, each with its connection and ordinal.
func (l *Losing) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lost, "; ")
}
