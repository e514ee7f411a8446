package admission

import (
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tokens is a limit in plain words: a bucket of tokens that refills.
type tokens struct {
	limit Limit
	have  float64
	at    time.Duration
}

func (m *tokens) take(now time.Duration) bool {
	m.have = min(float64(m.limit.Burst), m.have+(now-m.at).Seconds()*m.limit.PerSecond)
	m.at = now
	if m.have < 1-1e-9 {
		return false
	}
	m.have--
	return true
}

// R7.4.2: a bucket lets through what a bucket of tokens would, and its
// Retry-After is the moment, not a tick earlier.
func TestABucketIsATokenBucketWithAnHonestRetryAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Rates whose interval is a whole number of microseconds: no rounding.
		limit := Limit{PerSecond: rapid.SampledFrom([]float64{0.5, 1, 8, 10, 100, 1000}).Draw(t, "rate"), Burst: rapid.IntRange(1, 6).Draw(t, "burst")}
		bucket, err := NewBucket(limit)
		if err != nil {
			t.Fatal(err)
		}
		table, err := NewTable(limit, 64)
		if err != nil {
			t.Fatal(err)
		}
		model := &tokens{limit: limit, have: float64(limit.Burst)}
		interval := time.Duration(float64(time.Second) / limit.PerSecond)
		now := time.Duration(rapid.IntRange(0, 1<<40).Draw(t, "start")) * time.Microsecond
		model.at = now
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += time.Duration(rapid.IntRange(0, 3).Draw(t, "gap")) * interval / 2
			want := model.take(now)
			for name, take := range map[string]func(time.Duration) time.Duration{"bucket": bucket.Take,
				"table": func(now time.Duration) time.Duration { return table.TakeUser(30001, now) }} {
				wait := take(now)
				if (wait == 0) != want {
					t.Fatalf("%s: at %v retry after %v, the model says %v", name, now, wait, want)
				}
				if wait > 0 {
					early, late := *model, *model
					if early.take(now + wait - time.Microsecond) {
						t.Fatalf("%s: at %v retry after %v is too late", name, now, wait)
					}
					if !late.take(now + wait) {
						t.Fatalf("%s: at %v retry after %v is too early", name, now, wait)
					}
				}
			}
		}
	})
}

// However many keys crowd a table, none gets more than two bursts and its
// rate: sharing makes a limit stricter, leaving a shared bucket gives one
// burst more at most.
func TestACrowdedTableIsNeverLaxerThanItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{PerSecond: 10, Burst: rapid.IntRange(1, 5).Draw(t, "burst")}
		table, err := NewTable(limit, 1) // one set of eight
		if err != nil {
			t.Fatal(err)
		}
		passed := map[int64]int{}
		now := time.Duration(0)
		keys := rapid.Int64Range(1, 40)
		for range rapid.IntRange(100, 400).Draw(t, "requests") {
			now += time.Duration(rapid.IntRange(0, 20).Draw(t, "ms")) * time.Millisecond
			user := keys.Draw(t, "user")
			if table.TakeUser(user, now) == 0 {
				passed[user]++
			}
		}
		for user, n := range passed {
			if most := 2*float64(limit.Burst) + now.Seconds()*limit.PerSecond; float64(n) > most {
				t.Fatalf("user %d passed %d times in %v, limit %s allows %.1f", user, n, now, limit, most)
			}
		}
	})
}

// A table with room limits each key by itself, and one that was not seen for
// as long as its bucket takes to fill costs no room.
func TestKeysDoNotDisturbEachOther(t *testing.T) {
	limit := Limit{PerSecond: 10, Burst: 2}
	table, err := NewTable(limit, 1<<14)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	for round := range int64(50) { // 50 × 2,000 keys through 16,384 slots
		refused := 0
		for i := range int64(2000) {
			user := round*2000 + i
			for range 2 {
				if table.TakeUser(user, now) != 0 {
					refused++
				}
			}
			if table.TakeUser(user, now) == 0 {
				t.Fatalf("user %d: the third at once passed a burst of 2", user)
			}
		}
		if refused > 2 { // a shared tag: one in a million pairs of a set
			t.Fatalf("round %d: %d requests within their limit were refused", round, refused)
		}
		now += 200 * time.Millisecond
	}
}

func TestConcurrentTakersGetTheBurstAndNoMore(t *testing.T) {
	const burst = 1000
	limit := Limit{PerSecond: 1, Burst: burst}
	bucket, err := NewBucket(limit)
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewTable(limit, 64)
	if err != nil {
		t.Fatal(err)
	}
	table.TakeUser(1, 0) // has its slot
	var fromBucket, fromTable atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range burst {
				if bucket.Take(0) == 0 {
					fromBucket.Add(1)
				}
				if table.TakeUser(1, 0) == 0 {
					fromTable.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if fromBucket.Load() != burst || fromTable.Load() != burst-1 {
		t.Errorf("%d and %d passed, want %d and %d", fromBucket.Load(), fromTable.Load(), burst, burst-1)
	}
}

// Readers take their own times for now; one that is behind must not find the
// bucket full.
func TestATakerThatIsBehindFindsTheBucketAsItIs(t *testing.T) {
	table, err := NewTable(Limit{PerSecond: 10, Burst: 1}, 64)
	if err != nil {
		t.Fatal(err)
	}
	if table.TakeUser(1, 10*time.Second) != 0 {
		t.Fatal("the first is refused")
	}
	if table.TakeUser(1, 10*time.Second-300*time.Millisecond) == 0 {
		t.Error("passed at an earlier time")
	}
}

// After 203 days of uptime a table's clock begins anew.
func TestATablesClockWrapsAround(t *testing.T) {
	table, err := NewTable(Limit{PerSecond: 1, Burst: 1}, 64)
	if err != nil {
		t.Fatal(err)
	}
	wrap := time.Duration(1<<timeBits) * tick
	table.TakeUser(2, wrap/2-time.Hour) // half around, it seems to lie ahead of the users below
	for _, now := range []time.Duration{wrap - time.Millisecond, wrap + time.Second, 3 * wrap / 2, 2 * wrap} {
		if wait := table.TakeUser(1, now); wait != 0 {
			t.Errorf("at %v: retry after %v, want none", now, wait)
		}
		if table.TakeUser(1, now) == 0 {
			t.Errorf("at %v: the second at once passed", now)
		}
	}
}

func TestATableKeepsUsersAddressesAndNamesApart(t *testing.T) {
	addr := netip.MustParseAddr
	for rule, c := range map[string]struct {
		a, b func(*Table) time.Duration
		same bool
	}{
		"two users":   {func(t *Table) time.Duration { return t.TakeUser(1, 0) }, func(t *Table) time.Duration { return t.TakeUser(2, 0) }, false},
		"two devices": {func(t *Table) time.Duration { return t.TakeName([]byte("a"), 0) }, func(t *Table) time.Duration { return t.TakeName([]byte("b"), 0) }, false},
		"one device":  {func(t *Table) time.Duration { return t.TakeName([]byte("a"), 0) }, func(t *Table) time.Duration { return t.TakeName([]byte("a"), 0) }, true},
		"two IPv4 addresses": {func(t *Table) time.Duration { return t.TakeAddr(addr("192.0.2.1"), 0) },
			func(t *Table) time.Duration { return t.TakeAddr(addr("192.0.2.2"), 0) }, false},
		"an IPv4 address in both forms": {func(t *Table) time.Duration { return t.TakeAddr(addr("192.0.2.1"), 0) },
			func(t *Table) time.Duration { return t.TakeAddr(addr("::ffff:192.0.2.1"), 0) }, true},
		"an IPv6 /64": {func(t *Table) time.Duration { return t.TakeAddr(addr("2001:db8::1"), 0) },
			func(t *Table) time.Duration { return t.TakeAddr(addr("2001:db8::ffff:1"), 0) }, true},
		"two IPv6 /64s": {func(t *Table) time.Duration { return t.TakeAddr(addr("2001:db8::1"), 0) },
			func(t *Table) time.Duration { return t.TakeAddr(addr("2001:db8:0:1::1"), 0) }, false},
	} {
		table, err := NewTable(Limit{PerSecond: 1, Burst: 1}, 64)
		if err != nil {
			t.Fatal(err)
		}
		if c.a(table) != 0 {
			t.Errorf("%s: the first is refused", rule)
		}
		if got := c.b(table) != 0; got != c.same {
			t.Errorf("%s: share a bucket: %v, want %v", rule, got, c.same)
		}
	}
}

func TestTakingAllocatesNothing(t *testing.T) {
	table, err := NewTable(LimitsDefault.User, 64)
	if err != nil {
		t.Fatal(err)
	}
	addr, name, now := netip.MustParseAddr("2001:db8::1"), []byte("device"), time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += time.Millisecond
		table.TakeUser(1, now)
		table.TakeAddr(addr, now)
		table.TakeName(name, now)
	}); n != 0 {
		t.Errorf("%.1f allocations", n)
	}
}

func TestLimitText(t *testing.T) {
	for text, want := range map[string]Limit{"off": {}, "10:20": {10, 20}, "0.5:1": {0.5, 1}, "100000:500": {100000, 500}} {
		var l Limit
		if err := l.UnmarshalText([]byte(text)); err != nil || l != want {
			t.Errorf("%q is %+v, %v; want %+v", text, l, err, want)
		}
		if l.String() != text {
			t.Errorf("%q is written as %q", text, l)
		}
	}
	for _, text := range []string{"", "10", "10:", ":20", "-1:5", "10:0", "0:0", "0:5", "10:20:30", "NaN:1", "Inf:1", "1e9:1", "10:2000000", "0.001:1000", "on"} {
		l := Limit{1, 2}
		if err := l.UnmarshalText([]byte(text)); err == nil || l != (Limit{1, 2}) {
			t.Errorf("%q: error %v, limit %+v; want an error and no change", text, err, l)
		}
	}
	if err := (Limit{math.NaN(), 1}).Validate(); err == nil {
		t.Error("a rate that is no number is valid")
	}
}

func TestStageSetText(t *testing.T) {
	var set StageSet
	if err := set.UnmarshalText([]byte("gate, token")); err != nil || !set.Has(StageGate) || !set.Has(StageToken) || set.Has(StageUserLimit) {
		t.Errorf("got %v, %v", set, err)
	}
	if set.String() != "token,gate" {
		t.Errorf("written as %q", set)
	}
	for _, text := range []string{"request", "gates", "token gate"} {
		before := set
		if err := set.UnmarshalText([]byte(text)); err == nil || set != before {
			t.Errorf("%q: error %v, set %v; want an error and no change", text, err, set)
		}
	}
}

// R10.1: a stage that is switched off limits nothing, a bad limit is named.
func TestLimitsGoWithoutAStage(t *testing.T) {
	all := LimitsConfig{Process: Limit{1, 1}, User: Limit{1, 1}, IP: Limit{1, 1}, Device: Limit{1, 1}, Slots: 64}
	l, err := NewLimits(all, StageSet(0).With(StageUserLimit).With(StageProcessLimit))
	if err != nil {
		t.Fatal(err)
	}
	if l.Process != nil || l.User != nil || l.IP == nil || l.Device == nil {
		t.Errorf("limits are %+v", l)
	}
	if l.Process.Take(0) != 0 || l.User.TakeUser(1, 0) != 0 || l.User.TakeAddr(netip.Addr{}, 0) != 0 || l.User.TakeName(nil, 0) != 0 {
		t.Error("a limit that is off refuses")
	}
	for _, bad := range []LimitsConfig{{Process: Limit{1, 0}}, {User: Limit{-1, 1}, Slots: 64}, {IP: Limit{1e6, 1}, Slots: 64}, {Device: Limit{1, 1}}} {
		if _, err := NewLimits(bad, 0); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

func BenchmarkTakeUser(b *testing.B) {
	table, err := NewTable(LimitsDefault.User, TableSlotsDefault)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range b.N {
		table.TakeUser(int64(i), time.Duration(i)*3*time.Microsecond)
	}
}
