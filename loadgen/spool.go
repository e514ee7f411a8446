package loadgen

import (
	"sync/atomic"

	"github.com/hotsku/hotsku/loadgen/history"
)

const (
	spoolBlockBytes = 4096 * history.RecordBytes
	spoolBlocks     = 64
)

// spool hands full blocks of records to one goroutine that compresses and
// writes them, so that no reader of answers waits for either. Its memory is
// fixed; when all blocks are waiting to be written, whoever needs the next one
// waits too, and the spool counts it.
type spool struct {
	full, free chan []byte
	stalls     atomic.Uint64
	failed     chan struct{} // closed at the first write error
	done       chan struct{}
	err        error // of writing; valid after done
}

func newSpool(w *history.Writer) *spool {
	s := &spool{
		full:   make(chan []byte, spoolBlocks),
		free:   make(chan []byte, spoolBlocks),
		failed: make(chan struct{}),
		done:   make(chan struct{}),
	}
	for range spoolBlocks {
		s.free <- make([]byte, 0, spoolBlockBytes)
	}
	go s.run(w)
	return s
}

// swap takes a block to write and returns an empty one.
func (s *spool) swap(block []byte) []byte {
	if block != nil {
		s.full <- block // never blocks: there are no more blocks than places
	}
	select {
	case b := <-s.free:
		return b
	default:
		s.stalls.Add(1)
		return <-s.free
	}
}

func (s *spool) run(w *history.Writer) {
	defer close(s.done)
	for b := range s.full {
		if s.err == nil {
			if s.err = w.WriteBlock(b); s.err != nil {
				close(s.failed)
			}
		}
		s.free <- b[:0]
	}
}

// close waits until everything handed over is written.
func (s *spool) close() error {
	close(s.full)
	<-s.done
	return s.err
}
