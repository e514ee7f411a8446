package pace_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hotsku/hotsku/loadgen/pace"
	"pgregory.net/rapid"
)

// shape draws any schedule, composed ones up to depth deep.
func shape(depth int) *rapid.Generator[pace.Schedule] {
	return rapid.Custom(func(t *rapid.T) pace.Schedule {
		rate := rapid.Float64Range(1, 1e6)
		span := time.Duration(rapid.Int64Range(int64(2*time.Second), int64(48*time.Hour)).Draw(t, "span"))
		kinds := []string{"constant", "ramp", "step", "burst", "poisson", "sine"}
		if depth > 0 {
			kinds = append(kinds, "sequence", "overlay")
		}
		var s pace.Schedule
		var err error
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "constant":
			s, err = pace.NewConstant(rate.Draw(t, "rate"), span)
		case "ramp":
			s, err = pace.NewRamp(rapid.Float64Range(0, 1e6).Draw(t, "from"), rate.Draw(t, "to"), span)
		case "step":
			rates := rapid.SliceOfN(rapid.Float64Range(0, 1e5), 0, 20).Draw(t, "rates")
			s, err = pace.NewStep(append(rates, 10), span/20)
		case "burst":
			at := time.Duration(rapid.Int64Range(0, int64(span)-1).Draw(t, "at"))
			s, err = pace.NewBurst(rapid.Uint64Range(1, 50).Draw(t, "count"), at, span)
		case "poisson":
			s, err = pace.NewPoisson(rate.Draw(t, "rate"), span, rapid.Uint64().Draw(t, "seed"))
		case "sine":
			mean := rate.Draw(t, "mean")
			s, err = pace.NewSine(mean, mean*rapid.Float64Range(0, 1).Draw(t, "amplitude"), max(span/time.Duration(rapid.IntRange(1, 300).Draw(t, "periods")), time.Millisecond), span)
		case "sequence":
			s, err = pace.NewSequence(rapid.SliceOfN(shape(depth-1), 1, 4).Draw(t, "parts")...)
		case "overlay":
			s, err = pace.NewOverlay(rapid.SliceOfN(shape(depth-1), 1, 4).Draw(t, "parts")...)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestEveryShapeKeepsTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shape(2).Draw(t, "shape")
		if s.Due(-1) != 0 || s.Due(s.Span()) != s.Total() || s.Due(s.Span()-1) != s.Total() || s.Due(math.MaxInt64) != s.Total() {
			t.Fatalf("due before, in the last nanosecond, at and after the end: %d, %d, %d, %d of %d",
				s.Due(-1), s.Due(s.Span()-1), s.Due(s.Span()), s.Due(math.MaxInt64), s.Total())
		}
		n := rapid.Uint64Range(0, s.Total()-1).Draw(t, "n")
		at := s.At(n)
		if at < 0 || at >= s.Span() {
			t.Fatalf("At(%d) = %d outside [0, %d)", n, at, s.Span())
		}
		if due := s.Due(at); due <= n {
			t.Fatalf("request %d is due at %d, but only %d are", n, at, due)
		}
		if due := s.Due(at - 1); due > n {
			t.Fatalf("request %d is due at %d, but %d are before it", n, at, due)
		}
		e := time.Duration(rapid.Int64Range(0, int64(s.Span())).Draw(t, "elapsed"))
		if due := s.Due(e); due < s.Total() && s.At(due) <= e || due > 0 && s.At(due-1) > e {
			t.Fatalf("%d due at %d, but the last of them at %d and the next at %d", due, e, s.At(due-1), s.At(due))
		}
	})
}

func TestACursorSaysWhatAtSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s pace.Schedule = shape(2).Draw(t, "shape")
		if count := rapid.IntRange(1, 4).Draw(t, "shards"); count > 1 && s.Total() >= 4 {
			var err error
			if s, err = pace.NewShard(s, rapid.IntRange(0, count-1).Draw(t, "index"), count); err != nil {
				t.Fatal(err)
			}
		}
		n := rapid.Uint64Range(0, s.Total()-1).Draw(t, "n")
		c := pace.Walk(s, n)
		for range 400 {
			if n == s.Total() {
				break
			}
			if got, want := c.Next(), s.At(n); got != want {
				t.Fatalf("request %d: the cursor says %d, At %d", n, got, want)
			}
			n++
		}
	})
}

func TestShardsAreTheWholeInterleaved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := shape(1).Draw(t, "shape")
		count := rapid.IntRange(1, 7).Draw(t, "count")
		if whole.Total() < uint64(count) {
			t.Skip("fewer requests than shards")
		}
		e := time.Duration(rapid.Int64Range(-1, int64(whole.Span())).Draw(t, "elapsed"))
		var total, due uint64
		for i := range count {
			s, err := pace.NewShard(whole, i, count)
			if err != nil {
				t.Fatal(err)
			}
			total += s.Total()
			due += s.Due(e)
			n := rapid.Uint64Range(0, s.Total()-1).Draw(t, "n")
			if number := s.Number(n); number%uint64(count) != uint64(i) || s.At(n) != whole.At(number) {
				t.Fatalf("request %d of shard %d is request %d at %d, the whole's is at %d", n, i, number, s.At(n), whole.At(number))
			}
		}
		if total != whole.Total() || due != whole.Due(e) {
			t.Fatalf("the shards hold %d of %d, due are %d of %d", total, whole.Total(), due, whole.Due(e))
		}
	})
}

func TestShapesOfferTheAreaUnderTheirRate(t *testing.T) {
	ms := time.Millisecond
	for _, tc := range []struct {
		text string
		at   time.Duration
		due  uint64
	}{
		{"ramp:0:1000:10s", 10 * time.Second, 5000},
		{"ramp:0:1000:10s", 5 * time.Second, 1250},
		{"ramp:1000:0:10s", 5 * time.Second, 3750},
		{"ramp:100:300:1s", time.Second, 200},
		{"step:100:300:3:3s", time.Second - 1, 100},
		{"step:100:300:3:3s", 2*time.Second - 1, 300},
		{"step:100:300:3:3s", 3 * time.Second, 600},
		{"step:0.4:0.6:2:10s", 10 * time.Second, 5}, // rounded once: 2 and 3 are 5
		{"sine:1000:1000:4s:8s", 4*time.Second - 1, 4000},
		{"sine:1000:1000:4s:8s", 8 * time.Second, 8000},
		{"sine:1000:500:4s:4s", 2*time.Second - 1, 2637}, // 2000 + 500×4/π
		{"burst:700:2s:3s", 2*time.Second - 1, 0},
		{"burst:700:2s:3s", 2 * time.Second, 700},
		{"poisson:30000:1s", time.Second, 30_000},
		{"constant:100:1s,constant:200:1s", 1500*ms - 1, 200},
		{"constant:100:1s+burst:50:500ms:1s", 500*ms - 1, 50},
		{"constant:100:1s + burst:50:500ms:1s, ramp:0:10:1s", 500 * ms, 101},
		{"constant:100:1s + burst:50:500ms:1s, ramp:0:10:1s", 2 * time.Second, 155},
		{"constant", 5 * time.Second, 50},
		{"ramp", 5 * time.Second, 25},
		{"step", 5 * time.Second, 30},
		{"burst", 0, 10},
		{"poisson", 5 * time.Second, 50},
		{"sine", 5 * time.Second, 50},
	} {
		s, err := pace.Parse(tc.text, pace.Defaults{Rate: 10, Span: 5 * time.Second, Seed: 1})
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		// A curve is drawn in small steps: one request more or less inside it.
		if got := s.Due(tc.at); max(got, tc.due)-min(got, tc.due) > 1 || tc.at >= s.Span() && got != tc.due {
			t.Errorf("%s: %d due at %v, want %d", tc.text, got, tc.at, tc.due)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		text string
		want error
	}{
		{"", pace.ErrShape}, {"square", pace.ErrShape}, {"constant:1", pace.ErrShape}, {"constant:1:2s:3", pace.ErrShape},
		{"constant:x:1s", pace.ErrRate}, {"constant:1:1", pace.ErrDuration}, {"constant:1:1s,", pace.ErrShape}, {"constant:NaN:1s", pace.ErrRate},
		{"ramp:0:0:1s", pace.ErrRate}, {"ramp:-1:5:1s", pace.ErrRate}, {"step:1:2:1:1s", pace.ErrShape}, {"step:1:2:3:0s", pace.ErrDuration},
		{"step:1:2:x:1s", pace.ErrShape}, {"burst:0:0s:1s", pace.ErrShape}, {"burst:1:1s:1s", pace.ErrDuration}, {"sine:1:2:1s:10s", pace.ErrShape},
		{"sine:1:1:1ns:10s", pace.ErrDuration}, {"sine:1:1:1ms:100h", pace.ErrShape}, {"poisson:1e9:1s", pace.ErrRate},
		{"constant:1:700h,constant:1:700h", pace.ErrDuration},
	} {
		if s, err := pace.Parse(tc.text, pace.Defaults{Rate: 1, Span: 10 * time.Second}); !errors.Is(err, tc.want) {
			t.Errorf("%q: schedule %v, error %v, want %v", tc.text, s, err, tc.want)
		}
	}
}

// A Poisson process's counts in equal intervals vary as much as they are
// large, and its gaps are exponential.
func TestPoissonIsOne(t *testing.T) {
	for seed := range uint64(2) {
		const total = 50_000
		p, err := pace.NewPoisson(1000, total*time.Millisecond, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, window := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
			n := int(p.Span() / window)
			mean, variance := float64(total)/float64(n), 0.0
			for i := range n {
				d := float64(p.Due(time.Duration(i+1)*window-1)-p.Due(time.Duration(i)*window-1)) - mean
				variance += d * d / float64(n)
			}
			// The index of dispersion is 1, give or take six deviations.
			if index := variance / mean; math.Abs(index-1) > 6*math.Sqrt(2/float64(n)) {
				t.Errorf("seed %d: in windows of %v variance is %.3f of the mean, want 1", seed, window, index)
			}
		}
		var sum, long float64
		c := pace.Walk(p, 0)
		for last, n := time.Duration(0), 0; n < total; n++ {
			at := c.Next()
			gap := float64(at-last) / 1e6
			sum += gap
			if gap > math.Ln2 { // of a mean of 1 ms: half of all gaps
				long++
			}
			last = at
		}
		if half := long / total; math.Abs(half-0.5) > 0.02 || math.Abs(sum/total-1) > 0.02 {
			t.Errorf("seed %d: %.3f of the gaps exceed the median of an exponential one, and they are %.3f ms long on average", seed, half, sum/total)
		}
	}
}

// A request of a curve is due when the area under the rate reaches its number,
// give or take one small step.
func TestCurvesAreDueWhereTheAreaIs(t *testing.T) {
	s, err := pace.NewRamp(0, 2, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for n := range s.Total() {
		exact := time.Duration(math.Sqrt(10*float64(n)) * 1e9) // 0.1 t² = n
		if at := s.At(n); at > exact+10*time.Second/4096 || at < exact-10*time.Second/4096 {
			t.Errorf("request %d is due at %v, want %v", n, at, exact)
		}
	}
}

// Where cells of a Poisson schedule meet, nothing is lost or counted twice.
func TestPoissonHoldsAtTheBoundsOfItsCells(t *testing.T) {
	const span = time.Second + 7
	p, err := pace.NewPoisson(100_000, span, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(512) {
		for e := time.Duration(i*int64(span)/512) - 1; e <= time.Duration(i*int64(span)/512)+1; e++ {
			due := p.Due(e)
			if due > 0 && p.At(due-1) > e || due < p.Total() && p.At(due) <= e {
				t.Fatalf("%d are due at %d, the last at %d", due, e, p.At(max(due, 1)-1))
			}
		}
	}
}

func TestACursorMayBeginAmongRequestsOfOneMoment(t *testing.T) {
	s, err := pace.Parse("burst:5:1s:3s+constant:1:3s+burst:3:1s:2s", pace.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	for from := range s.Total() {
		c := pace.Walk(s, from)
		for n := from; n < s.Total(); n++ {
			if got, want := c.Next(), s.At(n); got != want {
				t.Fatalf("from %d: request %d at %v, want %v", from, n, got, want)
			}
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	halves := map[uint64]bool{}
	for seed := range uint64(20) {
		p, err := pace.NewPoisson(1000, time.Second, seed)
		if err != nil {
			t.Fatal(err)
		}
		halves[p.Due(500*time.Millisecond)] = true
	}
	if len(halves) < 5 {
		t.Errorf("twenty seeds have %d numbers of requests in their first half", len(halves))
	}

	a, _ := pace.NewPoisson(1000, time.Second, 1)
	b, _ := pace.NewPoisson(1000, time.Second, 2)
	again, _ := pace.NewPoisson(1000, time.Second, 1)
	same := 0
	for n := range a.Total() {
		if a.At(n) != again.At(n) {
			t.Fatalf("request %d of equal seeds is due at %v and %v", n, a.At(n), again.At(n))
		}
		if a.At(n) == b.At(n) {
			same++
		}
	}
	if same > 10 {
		t.Errorf("%d of %d requests of two seeds are due at the same nanosecond", same, a.Total())
	}
}

func BenchmarkCursor(b *testing.B) {
	for _, text := range []string{"constant", "ramp", "sine", "poisson", "constant:300000:9h+poisson:100000:10h"} {
		b.Run(text, func(b *testing.B) {
			s, err := pace.Parse(text, pace.Defaults{Rate: 300_000, Span: 10 * time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			c := pace.Walk(s, 0)
			for b.Loop() {
				c.Next()
			}
		})
	}
}

func ExampleParse() {
	s, _ := pace.Parse("ramp:0:1000:30s,constant:1000:1m", pace.Defaults{})
	fmt.Println(s.Total(), s.Span(), s.Due(30*time.Second))
	// Output: 75000 1m30s 15001
}
