package wire

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// now makes a read or write call on a non-blocking file, again if a signal
// came between. n is 0 beside an error.
func now(call uintptr, fd int, b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		r, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(r), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
