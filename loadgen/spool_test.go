package loadgen

import (
	"errors"
	"testing"

	"github.com/hotsku/hotsku/loadgen/history"
)

var errFull = errors.New("disk full")

// diskOf takes n writes and fails from then on.
type diskOf struct{ n int }

func (d *diskOf) Write(b []byte) (int, error) {
	if d.n--; d.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestSpoolReportsAFailedWriteAndKeepsTakingBlocks(t *testing.T) {
	w, err := history.NewWriter(&diskOf{n: 2}, history.Header{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSpool(w)
	block := s.swap(nil)
	for range 3 * spoolBlocks {
		block = s.swap(block[:spoolBlockBytes])
	}
	<-s.failed
	if err := s.close(); !errors.Is(err, errFull) {
		t.Errorf("close: error %v, want %v", err, errFull)
	}
	if err := w.Close(0); !errors.Is(err, errFull) {
		t.Errorf("the writer closed with %v, want %v", err, errFull)
	}
}
