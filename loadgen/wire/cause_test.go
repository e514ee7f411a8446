package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestCauseOfNamesWhatWentWrong(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}
	}
	for _, tc := range []struct {
		err  error
		want Cause
	}{
		{nil, CauseNone},
		{fmt.Errorf("read: %w", io.EOF), CauseClosed},
		{dial(syscall.ECONNRESET), CauseReset},
		{dial(syscall.EPIPE), CauseReset},
		{fmt.Errorf("%w: x", ErrMalformed), CauseMalformed},
		{dial(syscall.ECONNREFUSED), CauseRefused},
		{dial(syscall.EADDRNOTAVAIL), CausePorts},
		{dial(syscall.EMFILE), CauseDescriptors},
		{dial(syscall.EHOSTUNREACH), CauseUnreachable},
		{dial(syscall.ETIMEDOUT), CauseDialTimeout},
		{context.DeadlineExceeded, CauseDialTimeout},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}, CauseName},
		{errors.New("else"), CauseOther},
	} {
		if got := CauseOf(tc.err); got != tc.want {
			t.Errorf("CauseOf(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
	for c := range Cause(CauseCount) {
		if c.String() == "" || c.String() == "invalid" {
			t.Errorf("cause %d has no name", c)
		}
	}
}
