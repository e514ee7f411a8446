package wire

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// readBytes is the read buffer of a poller, or of a TLS connection.
const readBytes = 64 << 10

// eventsMax is how many connections one look at the kernel's list gives.
const eventsMax = 128

// Poller reads for many plain connections: one goroutine that wakes up when
// any of them has something, and reads each once. Against a goroutine for each
// connection that saves two switches and an empty read for every answer that
// comes alone. It watches by level, so that what one read leaves, an end of
// the stream too, is seen at the next look.
//
// Its list of ready connections is itself a file that the runtime's poller
// watches, so the goroutine holds no thread while it waits.
type Poller struct {
	epoll int
	file  *os.File // owns epoll
	raw   syscall.RawConn
	done  chan struct{}

	mu    sync.Mutex
	conns []*Conn // by the number in the events

	buf    []byte
	events [eventsMax]unix.EpollEvent
}

// NewPoller starts a poller; Close ends it.
func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a poller: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // for os.NewFile to watch it
		return nil, errors.Join(fmt.Errorf("make a poller: %w", err), unix.Close(fd))
	}
	p := &Poller{epoll: fd, file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{}), buf: make([]byte, readBytes)}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a poller: %w", err), p.file.Close())
	}
	go p.run()
	return p, nil
}

// Close ends the goroutine. Connections must have been closed before.
func (p *Poller) Close() error {
	err := p.file.Close()
	<-p.done
	if err != nil {
		return fmt.Errorf("close the poller: %w", err)
	}
	return nil
}

// register gives a slot its number.
func (p *Poller) register(c *Conn) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
	return int32(len(p.conns) - 1)
}

// watch begins to read for a slot's connection.
func (p *Poller) watch(fd int, slot int32) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: slot} // of the event, not of the file
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	return nil
}

// forget ends it; what was gathered already may still come.
func (p *Poller) forget(fd int) {
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) // it is there
}

func (p *Poller) run() {
	defer close(p.done)
	var n int
	look := func(fd uintptr) bool {
		var err error
		n, err = unix.EpollWait(int(fd), p.events[:], 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	}
	for {
		// Once nothing is ready this parks until the list is not empty again.
		if err := p.raw.Read(look); err != nil || n <= 0 {
			return // closed
		}
		for i := range p.events[:n] {
			p.mu.Lock()
			c := p.conns[p.events[i].Fd]
			p.mu.Unlock()
			c.readable(p.buf)
		}
	}
}

// readNow reads what is there without ever blocking. The socket is a
// non-blocking one, so the runtime need not know of the call.
func readNow(fd int, b []byte) (int, error) {
	return now(unix.SYS_READ, fd, b)
}

// writeNow writes what the socket takes now. A full socket is not an error.
func writeNow(fd int, b []byte) (int, error) {
	n, err := now(unix.SYS_WRITE, fd, b)
	if errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return n, err
}
