package loadgen

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// systemClock is the machine's.
type systemClock struct{}

// Now implements Clock.
func (systemClock) Now() time.Time { return time.Now() }

// Sleep implements Clock by the kernel's timer: the runtime's own ones are
// rounded up to the next millisecond, which would be the smallest send lag. It
// may return early; who sleeps looks at the clock again.
func (systemClock) Sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // EINTR: early
}

// timerSlack is how much later than asked the kernel may end a sleep, in ns, to
// gather several; its default is 50,000.
const timerSlack = 1000

// sharpen makes the sleeps of the calling goroutine exact until the function it
// returns is called. Where the kernel refuses they are just less so.
func sharpen() (restore func()) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the default again
		runtime.UnlockOSThread()
	}
}
