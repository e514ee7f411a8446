package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// ErrTLS: the connection stood, and the TLS handshake on it failed.
var ErrTLS = errors.New("TLS handshake")

// Cause says why a connection, or the attempt to open one, ended, and with it
// the requests it carried. The values are stored in histories.
type Cause uint8

// Causes.
const (
	CauseNone        Cause = 0  // it did not, or the run closed it
	CauseReset       Cause = 1  // reset by the peer
	CauseClosed      Cause = 2  // ended by the peer, announced or not
	CauseMalformed   Cause = 3  // an answer that is not HTTP, or one nobody asked for
	CauseExpired     Cause = 4  // closed here: every request on it had timed out
	CauseRefused     Cause = 5  // dial: nobody listens
	CauseDialTimeout Cause = 6  // dial: no answer in time
	CausePorts       Cause = 7  // dial: no ephemeral port left
	CauseDescriptors Cause = 8  // dial: no file descriptor left
	CauseName        Cause = 9  // dial: the host name does not resolve
	CauseUnreachable Cause = 10 // dial: no route
	CauseOther       Cause = 11 // anything else
	CauseTLS         Cause = 12 // dial: no TLS session, such as a certificate that is not trusted

	// CauseCount is above every cause.
	CauseCount = 13
)

var causeNames = [CauseCount]string{
	"none", "reset", "closed", "malformed", "expired", "refused", "dial_timeout",
	"ports_exhausted", "descriptors_exhausted", "name_not_resolved", "unreachable", "other", "tls",
}

// String returns the cause's name in reports.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "invalid"
}

// CauseOf classifies an error of dialing, reading or writing.
func CauseOf(err error) Cause {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case err == nil:
		return CauseNone
	case errors.Is(err, ErrMalformed):
		return CauseMalformed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return CauseClosed
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return CauseReset
	case errors.Is(err, syscall.ECONNREFUSED):
		return CauseRefused
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE):
		return CausePorts
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return CauseDescriptors
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return CauseUnreachable
	case errors.As(err, &dns):
		return CauseName
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return CauseDialTimeout
	case errors.Is(err, ErrTLS):
		return CauseTLS
	}
	return CauseOther
}
