package reconcile

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

var base = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

// inRedis is a reservation made so long before base.
func inRedis(status seckill.ReservationStatus, age time.Duration, mend ...func(*reservation.Reservation)) *reservation.Reservation {
	r := &reservation.Reservation{Status: status, ReservedAt: base.Add(-age), NextRetryAt: base.Add(time.Second - age)}
	for _, m := range mend {
		m(r)
	}
	return r
}

func compensated(returned bool) func(*reservation.Reservation) {
	return func(r *reservation.Reservation) { r.CompensatedAt, r.Returned = base, returned }
}

// R12.5 R7.8.5 R11.1: where a reservation is, by what both stores say.
func TestWhereAReservationIs(t *testing.T) {
	const long = time.Hour
	l := limits{Config: ConfigDefault, now: base}
	behind := l
	behind.known, behind.backlog = true, 2*time.Hour
	idle := l
	idle.known = true
	for rule, c := range map[string]struct {
		r         *reservation.Reservation
		d         *decision
		l         limits
		want      place
		unapplied bool
		words     string
	}{
		"pending and young is in process":               {r: inRedis("PENDING_MESSAGE", time.Second), want: placeInProcess},
		"pending that a scanner moves on is in process": {r: inRedis("PENDING_MESSAGE", long, func(r *reservation.Reservation) { r.NextRetryAt = base.Add(time.Second) }), want: placeInProcess},
		"pending and long overdue is stuck":             {r: inRedis("PENDING_MESSAGE", long), want: placeStuck, words: "overdue"},
		"sent and young is in process":                  {r: inRedis("MESSAGE_SENT", 30*time.Second), want: placeInProcess},
		"sent and old is lost":                          {r: inRedis("MESSAGE_SENT", long), want: placeLost, words: "undecided for 1h"},
		"sent and old behind a backlog is in process":   {r: inRedis("MESSAGE_SENT", long), l: behind, want: placeInProcess},
		"sent and older than all that waits is lost":    {r: inRedis("MESSAGE_SENT", 3*long), l: behind, want: placeLost, words: "undecided"},
		"sent and old while nothing waits is lost":      {r: inRedis("MESSAGE_SENT", long), l: idle, want: placeLost, words: "undecided"},
		"ordered and shown":                             {r: inRedis("ORDER_CREATED", long), d: &decision{status: "ORDER_CREATED", age: long}, want: placeOrdered},
		"ordered just now and not shown yet":            {r: inRedis("MESSAGE_SENT", long), d: &decision{status: "ORDER_CREATED", age: time.Second}, want: placeOrdered},
		"ordered long since and not shown is unapplied": {r: inRedis("MESSAGE_SENT", long), d: &decision{status: "ORDER_CREATED", age: long}, want: placeOrdered, unapplied: true},
		"ordered while still pending is ordered":        {r: inRedis("PENDING_MESSAGE", long), d: &decision{status: "ORDER_CREATED", age: time.Second}, want: placeOrdered},
		"rejected and compensated":                      {r: inRedis("REJECTED_LATE", long, compensated(true)), d: &decision{"REJECTED_LATE", true, long}, want: placeCompensated},
		"rejected just now awaits its compensation":     {r: inRedis("MESSAGE_SENT", long), d: &decision{"REJECTED_LATE", true, time.Second}, want: placeCompensationPending},
		"rejected long since without one is unapplied":  {r: inRedis("MESSAGE_SENT", long), d: &decision{"REJECTED_LATE", true, long}, want: placeCompensationPending, unapplied: true},
		"an expired order awaits its compensation":      {r: inRedis("ORDER_CREATED", long), d: &decision{"EXPIRED", false, time.Second}, want: placeCompensationPending},
		"set aside":                                       {r: inRedis("SET_ASIDE", long), d: &decision{status: "SET_ASIDE", age: long}, want: placeSetAside},
		"set aside and not shown is unapplied":            {r: inRedis("PENDING_MESSAGE", long), d: &decision{status: "SET_ASIDE", age: long}, want: placeSetAside, unapplied: true},
		"gone from Redis and undecided has vanished":      {want: placeVanished, words: "gone"},
		"gone from Redis and decided is as decided":       {d: &decision{status: "ORDER_CREATED", age: long}, want: placeOrdered},
		"an order that only Redis knows is contradicted":  {r: inRedis("ORDER_CREATED", long), want: placeContradicted, words: "never decided"},
		"a compensation only Redis knows is contradicted": {r: inRedis("MESSAGE_SENT", long, compensated(true)), want: placeContradicted, words: "never decided"},
		"a live order compensated is contradicted":        {r: inRedis("ORDER_CREATED", long, compensated(true)), d: &decision{status: "ORDER_CREATED", age: long}, want: placeContradicted, words: "compensated in Redis"},
		"a unit returned against the decision":            {r: inRedis("REJECTED_NO_FINAL_STOCK", long, compensated(true)), d: &decision{"REJECTED_NO_FINAL_STOCK", false, long}, want: placeContradicted, words: "return true"},
		"a unit kept against the decision":                {r: inRedis("REJECTED_LATE", long, compensated(false)), d: &decision{"REJECTED_LATE", true, long}, want: placeContradicted, words: "return false"},
		"another end in Redis":                            {r: inRedis("SET_ASIDE", long), d: &decision{status: "ORDER_CREATED", age: long}, want: placeContradicted, words: "SET_ASIDE in Redis"},
	} {
		t.Run(rule, func(t *testing.T) {
			lim := c.l
			if lim.now.IsZero() {
				lim = l
			}
			f := judge(c.r, c.d, &lim)
			if f.place != c.want || f.unapplied != c.unapplied || !strings.Contains(f.words, c.words) || (c.words == "") != (f.words == "") {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// Whatever both stores say, a reservation is in one place, and only what lost
// its way is mended: what is decided is never sent again.
func TestJudgingAnything(t *testing.T) {
	statuses := []seckill.ReservationStatus{"PENDING_MESSAGE", "MESSAGE_SENT", "ORDER_CREATED", "REJECTED_NO_FINAL_STOCK",
		"REJECTED_DUPLICATE_USER", "REJECTED_LATE", "SET_ASIDE", "EXPIRED", "CANCELLED"}
	ages := rapid.Map(rapid.Int64Range(0, 200_000), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })
	rapid.Check(t, func(t *rapid.T) {
		var r *reservation.Reservation
		var d *decision
		if rapid.Bool().Draw(t, "in redis") {
			r = inRedis(rapid.SampledFrom(statuses).Draw(t, "redis"), ages.Draw(t, "age"))
			if rapid.Bool().Draw(t, "compensated") {
				compensated(rapid.Bool().Draw(t, "returned"))(r)
			}
		}
		if rapid.Bool().Draw(t, "decided") {
			d = &decision{rapid.SampledFrom(statuses[2:]).Draw(t, "status"), rapid.Bool().Draw(t, "return"), ages.Draw(t, "decided age")}
		}
		l := limits{Config: ConfigDefault, now: base, known: rapid.Bool().Draw(t, "known"), backlog: ages.Draw(t, "backlog")}
		f := judge(r, d, &l)
		if f.place < 0 || f.place >= places {
			t.Fatalf("no place: %+v", f)
		}
		if resend := f.place == placeStuck || f.place == placeLost; resend && (d != nil || r == nil || !r.Status.Undecided()) {
			t.Fatalf("decided or gone, and sent again: %+v", f)
		}
		if f.unapplied && (r == nil || d == nil || !r.CompensatedAt.IsZero()) {
			t.Fatalf("applied or unknown, and published again: %+v", f)
		}
		if (f.place == placeContradicted || f.place == placeVanished) && f.words == "" {
			t.Fatalf("wrong without a word: %+v", f)
		}
	})
}

// What was sent again waits twice as long each time.
func TestResendsAreSpaced(t *testing.T) {
	const first = time.Minute
	for times, wait := range map[int]time.Duration{0: 0, 1: first, 2: 2 * first, 3: 4 * first, 7: 64 * first, 50: 64 * first} {
		d := driven{base, times}
		if times > 0 && d.due(base.Add(wait-1), first) {
			t.Errorf("after %d times it is due before %v", times, wait)
		}
		if !d.due(base.Add(wait), first) {
			t.Errorf("after %d times it is not due after %v", times, wait)
		}
	}
}

func TestConfigurationsThatAreNone(t *testing.T) {
	if err := ConfigDefault.Validate(); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*Config){
		"every": func(c *Config) { c.Every = 0 }, "call": func(c *Config) { c.Call = -1 },
		"stuck": func(c *Config) { c.StuckAfter = 0 }, "lost": func(c *Config) { c.LostAfter = 0 }, "unapplied": func(c *Config) { c.UnappliedAfter = 0 },
		"repair limit": func(c *Config) { c.RepairLimit = 0 }, "SKUs": func(c *Config) { c.SKUs = 0 }, "after the end": func(c *Config) { c.KeepAfterEnd = -1 },
	} {
		c := ConfigDefault
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := New(Params{Config: ConfigDefault}); err == nil {
		t.Error("a reconciler without stores")
	}
}

func TestAReportInWords(t *testing.T) {
	r := Report{ActivityID: 1, SKUID: 2, Delta: 3, Witnesses: []string{"resv_X was lost"}}
	r.Units = Units{Issued: 10, Available: 4, Claimed: 3, Sold: 2, Released: 1}
	r.Redis = Redis{Known: true, Stock: 4, Drift: -1}
	r.Reservations.NotInRedis = 5
	for i := range 12 {
		r.Repair.Resend = append(r.Repair.Resend, "resv_"+string(rune('a'+i)))
	}
	r.Repair.DryRun = true
	var dry, wet bytes.Buffer
	if err := r.WriteText(&dry); err != nil {
		t.Fatal(err)
	}
	r.Repair.DryRun, r.Repair.Resent, r.Repair.Failed, r.Delta, r.Redis.Known = false, 7, []string{"the broker is down"}, 0, false
	if err := r.WriteText(&wet); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"activity 1 SKU 2: NOT CONSERVED, delta 3", "10 issued = 4 free + 3 claimed + 2 sold + 1 released", "drift -1",
		"! resv_X was lost", "would send again 12: resv_a", "and 2 more", "5 decided reservations are not in Redis"} {
		if !strings.Contains(dry.String(), want) {
			t.Errorf("%q is not in\n%s", want, dry.String())
		}
	}
	for _, want := range []string{"conserved", "does not know this SKU", "sent again 7 of 12", "failed: the broker is down"} {
		if !strings.Contains(wet.String(), want) {
			t.Errorf("%q is not in\n%s", want, wet.String())
		}
	}
}
