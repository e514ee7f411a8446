package hdr_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/hdr"
	"pgregory.net/rapid"
)

// Percentiles of the merge are those of the union: merging loses nothing, and
// neither does the log.
func TestMergedPercentilesAreTheUnions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		union, merged := hdr.New(), hdr.Set{}
		for i := range rapid.IntRange(1, 4).Draw(t, "shards") {
			part := hdr.New()
			for _, v := range rapid.SliceOfN(rapid.Int64Range(0, int64(30*time.Hour)), 0, 50).Draw(t, "latencies") {
				hdr.Observe(part, v)
				hdr.Observe(union, v)
			}
			var buf bytes.Buffer
			start := time.UnixMilli(1_700_000_000_000 + int64(i))
			if err := (hdr.Log{Start: start, Elapsed: time.Second, Set: hdr.Set{"latency": part}}).Write(&buf); err != nil {
				t.Fatal(err)
			}
			l, err := hdr.Read(&buf)
			if err != nil {
				t.Fatal(err)
			}
			if d := l.Start.Sub(start); d < -time.Millisecond || d > time.Millisecond || l.Elapsed != time.Second {
				t.Fatalf("from %v for %v, want %v for 1s", l.Start, l.Elapsed, start)
			}
			merged.Merge(l.Set)
		}
		if got := merged["latency"]; !got.Equals(union) {
			t.Fatalf("%d in the merge, %d in the union", got.TotalCount(), union.TotalCount())
		}
		for _, q := range []float64{0, 50, 90, 99, 99.9, 100} {
			if got, want := merged["latency"].ValueAtPercentile(q), union.ValueAtPercentile(q); got != want {
				t.Fatalf("P%v of the merge is %d, of the union %d", q, got, want)
			}
		}
	})
}

func TestReadRefusesWhatIsNoLog(t *testing.T) {
	var buf bytes.Buffer
	h := hdr.New()
	hdr.Observe(h, 1000)
	if err := (hdr.Log{Set: hdr.Set{"a": h}}).Write(&buf); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(buf.String(), "\n")
	last := lines[len(lines)-2]
	for name, text := range map[string]string{
		"twice":     buf.String() + last,
		"nameless":  buf.String() + strings.TrimPrefix(last, "Tag=a,"),
		"shortened": buf.String()[:buf.Len()-9] + "\n",
	} {
		if l, err := hdr.Read(strings.NewReader(text)); !errors.Is(err, hdr.ErrLog) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}

func TestTextIsInMilliseconds(t *testing.T) {
	h := hdr.New()
	for range 100 {
		hdr.Observe(h, int64(5*time.Millisecond))
	}
	var buf bytes.Buffer
	if err := hdr.WriteText(&buf, h); err != nil {
		t.Fatal(err)
	}
	if text := buf.String(); !strings.HasPrefix(text, " Value\tPercentile\tTotalCount\t1/(1-Percentile)\n") ||
		!strings.Contains(text, "#[Max     =        5.0") || !strings.Contains(text, "Total count    =          100]") {
		t.Errorf("%s", text)
	}
}
