package loadgen

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// systemClock is the machine's.
type systemClock struct{}

// Now implements Clock.
func (systemClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (systemClock) Sleep(d time.Duration) { time.Sleep(d) }

// alarm sleeps by a timer of the kernel's: the runtime's own ones are rounded
// up to the next millisecond, which would be the smallest send lag. It is
// waited for as a socket is, so that no thread is held meanwhile. Not safe for
// concurrent use.
type alarm struct {
	fd   int
	file *os.File // owns fd
	raw  syscall.RawConn
	read func(fd uintptr) bool
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	a := &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timer")}
	if a.raw, err = a.file.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a timer: %w", err), a.file.Close())
	}
	var expirations [8]byte
	a.read = func(fd uintptr) bool {
		_, err := unix.Read(int(fd), expirations[:])
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	}
	return a, nil
}

// sleep returns after d, which must be more than 0. Should the kernel refuse,
// the runtime's timer takes over.
func (a *alarm) sleep(d time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	err := unix.TimerfdSettime(a.fd, 0, &at, nil)
	if err == nil {
		err = a.raw.Read(a.read)
	}
	if err != nil {
		time.Sleep(d)
	}
}

func (a *alarm) close() { _ = a.file.Close() } // it holds nothing
