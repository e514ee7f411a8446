package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/seckill"
)

type statuses = map[seckill.ReservationStatus]int

func TestMessagesEndAsTheRulesSay(t *testing.T) { // R9.2, R9.4.1, R9.5, R16.10, R15.6, R9.5.1, R9.5.2, R9.5.3, R9.5.4, R9.5.5, R9.5.6, R9.5.7, R9.5.8, R13.1.8, R13.1.9, R13.1.10, R11.9, R11.10
	f := setup(t)
	message := func(sku allocate.SKU, user int64, change ...func(*seckill.OrderCreateMessage)) seckill.OrderCreateMessage {
		m := f.reserve(sku, user)
		for _, c := range change {
			c(&m)
		}
		return m
	}
	late := func(m *seckill.OrderCreateMessage) {
		m.ReservedAt = m.ReservedAt.Add(-time.Hour)
		m.ReservationExpiresAt = m.ReservedAt.Add(time.Minute)
	}
	otherVersion := func(m *seckill.OrderCreateMessage) { m.ActivityVersion = 2 }

	for name, test := range map[string]struct {
		tokens int
		closed bool
		// batches are processed one after another, then all once more
		batches func(allocate.SKU) [][]seckill.OrderCreateMessage
		want    statuses
		free    int
		inbox   int
	}{
		"an order each while there is stock": {
			tokens: 3,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1), message(s, 2)}}
			},
			want: statuses{seckill.StatusOrderCreated: 2}, free: 1, inbox: 2,
		},
		"no final stock once the tokens are gone": {
			tokens: 1,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1), message(s, 2)}, {message(s, 3)}}
			},
			want: statuses{seckill.StatusOrderCreated: 1, seckill.StatusRejectedNoFinalStock: 2}, inbox: 3,
		},
		"a user's second reservation in a batch is rejected and takes no token": {
			tokens: 2,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1), message(s, 1), message(s, 2)}}
			},
			want: statuses{seckill.StatusOrderCreated: 2, seckill.StatusRejectedDuplicateUser: 1}, inbox: 3,
		},
		"a user's second reservation in a later batch is rejected": {
			tokens: 2,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1)}, {message(s, 1)}}
			},
			want: statuses{seckill.StatusOrderCreated: 1, seckill.StatusRejectedDuplicateUser: 1}, free: 1, inbox: 2,
		},
		"a late message is rejected": {
			tokens: 2,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1, late), message(s, 2)}}
			},
			want: statuses{seckill.StatusRejectedLate: 1, seckill.StatusOrderCreated: 1}, free: 1, inbox: 2,
		},
		"a message for another version of the activity is rejected": {
			tokens: 2,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1, otherVersion), message(s, 2)}}
			},
			want: statuses{seckill.StatusRejectedVersion: 1, seckill.StatusOrderCreated: 1}, free: 1, inbox: 2,
		},
		"every message is rejected once the activity is closed": {
			tokens: 2, closed: true,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				return [][]seckill.OrderCreateMessage{{message(s, 1), message(s, 2, late)}}
			},
			want: statuses{seckill.StatusRejectedClosed: 2}, free: 2, inbox: 2,
		},
		"a message delivered twice in a batch counts once": {
			tokens: 2,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				m := message(s, 1)
				return [][]seckill.OrderCreateMessage{{m, m, message(s, 2)}}
			},
			want: statuses{seckill.StatusOrderCreated: 2}, inbox: 2,
		},
		"a second message about a decided reservation leaves an inbox entry only": {
			tokens: 2,
			batches: func(s allocate.SKU) [][]seckill.OrderCreateMessage {
				m := message(s, 1)
				other := m
				other.MessageID = "msg_other"
				another := m
				another.MessageID = "msg_another"
				return [][]seckill.OrderCreateMessage{{m, other}, {another}}
			},
			want: statuses{seckill.StatusOrderCreated: 1}, free: 1, inbox: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.exec(`TRUNCATE consumer_inbox`)
			sku := f.sku(test.tokens)
			if test.closed {
				if err := f.store.Close(t.Context(), sku.ActivityID); err != nil {
					t.Fatal(err)
				}
			}
			p := f.processor()
			batches := test.batches(sku)
			for range 2 { // the second time changes nothing
				for _, batch := range batches {
					f.process(p, f.deliver(batch...))
				}
				if diff := cmp.Diff(test.want, f.statuses(sku)); diff != "" {
					t.Fatalf("reservations differ (-want +got):\n%s", diff)
				}
			}
			f.assertConserved(sku)
			free := f.count(`SELECT count(*) FROM inventory_token WHERE activity_id = $1 AND status = 'AVAILABLE'`, sku.ActivityID)
			inbox := f.count(`SELECT count(*) FROM consumer_inbox`)
			if free != test.free || inbox != test.inbox {
				t.Errorf("free tokens %d, want %d; inbox %d, want %d", free, test.free, inbox, test.inbox)
			}
			if got := p.Stats().Orders.Load(); got != int64(test.want[seckill.StatusOrderCreated]) {
				t.Errorf("counted %d orders", got)
			}
			if p.Stats().Duplicates.Load()+p.Stats().Settled.Load() == 0 {
				t.Error("no duplicate was counted, and everything was delivered twice")
			}
		})
	}
}

func TestOneBatchMaySellSeveralSKUs(t *testing.T) {
	f := setup(t)
	a, b := f.sku(2), f.sku(1)
	p := f.processor(func(c *Config) { c.BatchLimit = 2 })
	f.process(p, f.deliver(f.reserve(a, 1), f.reserve(b, 1), f.reserve(a, 2), f.reserve(b, 2), f.reserve(a, 3)))
	want := statuses{seckill.StatusOrderCreated: 2, seckill.StatusRejectedNoFinalStock: 1}
	if diff := cmp.Diff(want, f.statuses(a)); diff != "" {
		t.Error(diff)
	}
	want = statuses{seckill.StatusOrderCreated: 1, seckill.StatusRejectedNoFinalStock: 1}
	if diff := cmp.Diff(want, f.statuses(b)); diff != "" {
		t.Error(diff)
	}
	f.assertConserved(a)
	f.assertConserved(b)
}

// adversarial is 12 deliveries over 5 tokens: 2 repeated messages, 2 second
// reservations of a user, 1 second message about a reservation.
func adversarial(f *fixture, sku allocate.SKU) []Delivery {
	var m []seckill.OrderCreateMessage
	for user := int64(1); user <= 7; user++ {
		m = append(m, f.reserve(sku, user))
	}
	second := m[2]
	second.MessageID += "x"
	m = append(m, f.reserve(sku, 1), f.reserve(sku, 2), second, m[0], m[3])
	return f.deliver(m...)
}

func TestAdversarialDeliveriesInAnyOrderConserveEveryToken(t *testing.T) { // R1.6, R1.7, R6.7b, R8.3.4
	f := setup(t)
	rng := rand.New(rand.NewPCG(7, 150))
	runs := 150
	if testing.Short() {
		runs = 20
	}
	p := f.processor()
	for range runs {
		sku := f.sku(5)
		deliveries := adversarial(f, sku)
		rng.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		f.race(p, rng, 4, 4, deliveries)
		f.race(p, rng, 4, 4, deliveries) // redelivered whole
		got := f.statuses(sku)
		rejected := got[seckill.StatusRejectedNoFinalStock] + got[seckill.StatusRejectedDuplicateUser]
		if got[seckill.StatusOrderCreated] != 5 || rejected != 4 {
			t.Fatalf("5 tokens, 9 reservations of 7 users: %v", got)
		}
		f.assertConserved(sku)
	}
	t.Logf("%d reruns, %d shortages in doubt", p.Stats().Reruns.Load(), p.Stats().ShortInDoubt.Load())
}

func TestAnEmptyClaimIsNotExhaustion(t *testing.T) { // R9.3.1, R9.3.2, R9.3.3
	f := setup(t)
	rng := rand.New(rand.NewPCG(7, 40))
	runs := 100
	if testing.Short() {
		runs = 40
	}
	p := f.processor()
	for run := range runs {
		sku := f.sku(40)
		var m []seckill.OrderCreateMessage
		for user := int64(1); user <= 40; user++ {
			m = append(m, f.reserve(sku, user))
		}
		for user := int64(1); user <= 20; user++ {
			m = append(m, f.reserve(sku, user))
		}
		rng.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
		f.race(p, rng, 4, 20, f.deliver(m...))
		want := statuses{seckill.StatusOrderCreated: 40, seckill.StatusRejectedDuplicateUser: 20}
		if got := f.statuses(sku); got[seckill.StatusOrderCreated] != 40 {
			t.Fatalf("run %d: 40 tokens for 40 users, lost %d orders: %v", run, 40-got[seckill.StatusOrderCreated], got)
		} else if run%20 == 0 {
			if diff := cmp.Diff(want, got); diff != "" && got[seckill.StatusRejectedNoFinalStock] == 0 {
				t.Error(diff)
			}
			f.assertConserved(sku)
		}
	}
	if p.Stats().ShortInDoubt.Load() == 0 {
		t.Error("no shortage was ever in doubt: the race was not run")
	}
	t.Logf("%d shortages in doubt, %d reruns", p.Stats().ShortInDoubt.Load(), p.Stats().Reruns.Load())
}

func TestStormOfTwiceTheStock(t *testing.T) { // R13.2
	f := setup(t)
	const tokens = 2000
	sku := f.sku(tokens)
	var m []seckill.OrderCreateMessage
	for user := int64(1); user <= 2*tokens; user++ {
		m = append(m, f.reserve(sku, user))
	}
	rng := rand.New(rand.NewPCG(7, 2))
	rng.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
	p := f.processor()
	f.race(p, rng, 4, 200, f.deliver(m...))
	want := statuses{seckill.StatusOrderCreated: tokens, seckill.StatusRejectedNoFinalStock: tokens}
	if diff := cmp.Diff(want, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
	f.assertConserved(sku)
	if n := f.count(`SELECT count(*) FROM inventory_reservation WHERE return_stock`); n != 0 {
		t.Errorf("%d units that never existed would be sold again", n)
	}
}

func TestFaultPointsAreHitInOrder(t *testing.T) {
	f := setup(t)
	sku := f.sku(1)
	var hits []seckill.FaultPoint
	visible := map[seckill.FaultPoint]int{}
	p := f.processor(func(c *Config) {
		c.Hit = func(point seckill.FaultPoint) {
			hits = append(hits, point)
			visible[point] = f.count(`SELECT count(*) FROM orders`)
		}
	})
	f.process(p, f.deliver(f.reserve(sku, 1)))
	want := []seckill.FaultPoint{seckill.FaultConsumerBeforeTx, seckill.FaultConsumerInTx, seckill.FaultConsumerAfterCommit}
	if !slices.Equal(hits, want) {
		t.Errorf("hit %v, want %v", hits, want)
	}
	if visible[seckill.FaultConsumerInTx] != 0 || visible[seckill.FaultConsumerAfterCommit] != 1 {
		t.Errorf("orders visible at the points: %v", visible)
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil || fmt.Sprint(err) != "order processor: no pool" {
		t.Errorf("got %v", err)
	}
}
