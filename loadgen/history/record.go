// Package history stores what became of every request of a run.
//
// A history is a folder of files, each a header, zstd blocks of fixed-size
// records and a trailer with the counts, so that a file cut off anywhere is
// recognised as such and the complete blocks before the cut can still be read.
// Each of these parts has a checksum: a bit that flipped on a disk or on the
// way must accuse nobody, and must not go unnoticed. It is no seal: who writes
// a history anew can say anything, and is found out by what the records say.
//
// Records are written in the order their requests ended, not by number. The
// package knows nothing of what was sent: subject, ordinal, code and tag mean
// what the run's provider says. It imports nothing of the generator.
package history

import "encoding/binary"

// RecordBytes is the size of an encoded record.
const RecordBytes = 64

// Never is the Sent or Done of something that did not happen.
const Never int64 = -1

// Outcome says how a request ended. The values are part of the file format.
type Outcome uint8

// Outcomes. Every scheduled request has exactly one.
const (
	// Completed: an answer was parsed, whatever its status.
	Completed Outcome = 1
	// Failed: written at least in part, then its connection was lost or the
	// answer could not be parsed. The server may have acted on it. Code holds
	// the generator's cause (loadgen/wire.Cause).
	Failed Outcome = 2
	// TimedOut: written, no answer within the timeout, given up at Done. The
	// server may have acted on it.
	TimedOut Outcome = 3
	// Dropped: not one byte was ever written. Sent and Done are Never.
	Dropped Outcome = 4
	// Unfinished: written, and the run ended before an answer or its timeout.
	Unfinished Outcome = 5
)

// String returns the outcome's name in reports.
func (o Outcome) String() string {
	switch o {
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case TimedOut:
		return "timed_out"
	case Dropped:
		return "dropped"
	case Unfinished:
		return "unfinished"
	}
	return "invalid"
}

// Record is one request. Times are nanoseconds from the start of the run.
type Record struct {
	N        uint64   // number of the request in the schedule
	Subject  uint64   // on whose behalf it was sent
	Ordinal  uint32   // requests of equal ordinal are repeats of one request id
	Intended int64    // when the schedule wanted it sent
	Sent     int64    // when its first byte was written, or Never
	Done     int64    // when it was answered or given up, or Never
	Status   uint16   // HTTP status of a completed request, else 0
	Outcome  Outcome  //
	Code     uint8    // completed: the extractor's code; failed: the cause
	Tag      [16]byte // the extractor's tag
}

// Encode writes the record's fixed form, little endian, into dst.
func (r *Record) Encode(dst *[RecordBytes]byte) {
	le := binary.LittleEndian
	le.PutUint64(dst[0:], r.N)
	le.PutUint64(dst[8:], r.Subject)
	le.PutUint32(dst[16:], r.Ordinal)
	le.PutUint64(dst[20:], uint64(r.Intended))
	le.PutUint64(dst[28:], uint64(r.Sent))
	le.PutUint64(dst[36:], uint64(r.Done))
	le.PutUint16(dst[44:], r.Status)
	dst[46] = byte(r.Outcome)
	dst[47] = r.Code
	copy(dst[48:], r.Tag[:])
}

// Decode is the inverse of Encode. It accepts any 64 bytes.
func (r *Record) Decode(src *[RecordBytes]byte) {
	le := binary.LittleEndian
	r.N = le.Uint64(src[0:])
	r.Subject = le.Uint64(src[8:])
	r.Ordinal = le.Uint32(src[16:])
	r.Intended = int64(le.Uint64(src[20:]))
	r.Sent = int64(le.Uint64(src[28:]))
	r.Done = int64(le.Uint64(src[36:]))
	r.Status = le.Uint16(src[44:])
	r.Outcome = Outcome(src[46])
	r.Code = src[47]
	r.Tag = [16]byte(src[48:])
}
