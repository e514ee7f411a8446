package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
)

// I10: it closes on an entry with stock 0 and on nothing else.
func TestTheGateClosesOnStockZeroOnly(t *testing.T) {
	j := &journal{skus: []reservation.SKU{item}}
	bubble(t, j, func(t *testing.T, g *Gate) {
		expect(t, g, false, "nothing is known")
		j.write("init", 2)
		time.Sleep(poll)
		synctest.Wait()
		expect(t, g, false, "2 units")
		j.write("reserve", 1, winner)
		time.Sleep(poll)
		synctest.Wait()
		expect(t, g, false, "1 unit")
		j.write("reserve", 0, 101)
		time.Sleep(poll)
		synctest.Wait()
		expect(t, g, true, "no unit")
		if g.refuses(101) {
			t.Error("the last member is refused")
		}
		if g.Refuses(7, 9, stranger) || g.Refuses(9, 8, stranger) {
			t.Error("another SKU is refused")
		}
	})
}

// A returned unit opens every gate; whoever buys it is a member from then on.
func TestTheGateReopensOnAReturnAndClosesOnItsSale(t *testing.T) {
	j := soldOut()
	bubble(t, j, func(t *testing.T, g *Gate) {
		expect(t, g, true, "sold out")
		j.write("return", 1, winner)
		time.Sleep(poll)
		synctest.Wait()
		expect(t, g, false, "returned")
		j.write("reserve", 0, 300)
		time.Sleep(poll)
		synctest.Wait()
		expect(t, g, true, "sold again")
		if g.refuses(300) {
			t.Error("the second buyer is refused")
		}
	})
}

// Knowledge is trusted from the moment its read began, not a nanosecond over
// GateTrust, whether Redis answers with errors, late, or not at all.
func TestTheGateOpensWhenItsKnowledgeIsTooOld(t *testing.T) {
	for name, ail := range map[string]func(*journal){
		"reads fail": func(j *journal) { j.err = errors.New("down") },
		"reads hang": func(j *journal) { j.delay = time.Hour },
		"reads take 100 ms longer than the trust": func(j *journal) { j.delay = GateTrust + 100*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			j := soldOut()
			bubble(t, j, func(t *testing.T, g *Gate) {
				expect(t, g, true, "confirmed at 0") // the read began now and took no time
				j.set(ail)
				time.Sleep(GateTrust - time.Nanosecond)
				expect(t, g, true, "just trusted")
				time.Sleep(time.Nanosecond)
				expect(t, g, false, "too old")
				time.Sleep(10 * time.Second)
				expect(t, g, false, "much too old")
				j.set(func(j *journal) { j.err, j.delay = nil, 0 })
				time.Sleep(GateConfigDefault.Read + poll)
				synctest.Wait()
				expect(t, g, true, "read again")
			})
		})
	}
}

func TestTrustCountsFromTheBeginningOfARead(t *testing.T) {
	const slow = 120 * time.Millisecond
	j := soldOut()
	j.delay = slow
	bubble(t, j, func(t *testing.T, g *Gate) { // the first read ends at 120 ms, on what was true at 0
		time.Sleep(slow)
		synctest.Wait()
		expect(t, g, true, "read")
		j.set(func(j *journal) { j.err = errors.New("down") })
		time.Sleep(GateTrust - slow - time.Nanosecond)
		expect(t, g, true, "just trusted")
		time.Sleep(time.Nanosecond)
		expect(t, g, false, "too old, though learnt 80 ms ago")
	})
}

// Of a long log only the tail counts: nobody is refused on a page that says
// sold out while later pages are unread.
func TestTheGateRefusesOnlyOnceTheTailWasReached(t *testing.T) {
	reached, resume := make(chan struct{}), make(chan struct{})
	j := &journal{skus: []reservation.SKU{item}}
	j.write("init", 1)
	j.write("reserve", 0, winner) // on the first page: sold out
	for u := int64(1000); len(j.entries) < 2*reservation.LogReadMax; u++ {
		j.write("return", 1, u-1)
		j.write("reserve", 0, u)
	}
	synctest.Test(t, func(t *testing.T) {
		reached, resume = make(chan struct{}), make(chan struct{})
		j.hold = func(read int) {
			if read == 2 {
				close(reached)
				<-resume
			}
		}
		g := NewGate(GateConfigDefault, j, slog.New(slog.DiscardHandler))
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { g.Run(ctx) })
		<-reached
		expect(t, g, false, "after the first page")
		close(resume)
		synctest.Wait()
		expect(t, g, true, "after the last page")
		for _, c := range j.entries {
			for _, u := range c.Users {
				if g.refuses(u) {
					t.Fatalf("member %d of entry %s is refused", u, c.ID)
				}
			}
		}
		cancel()
		running.Wait()
	})
}

// A log that is not the one the gate read says nothing about it: the gate
// must not stay closed on knowledge of a Redis that is gone.
func TestALogThatWasResetOpensTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		reset func(*journal)
		want  bool
	}{
		"Redis lost everything":           {func(j *journal) { j.entries = nil }, false},
		"Redis came back with older data": {func(j *journal) { j.entries = j.entries[:1] }, false},
		"the sale was warmed again": {func(j *journal) {
			j.entries = []reservation.Change{{ID: "900-0", Op: "init", Stock: 5}}
		}, false},
		"warmed again under lower ids": {func(j *journal) {
			j.entries = []reservation.Change{{ID: "1-5", Op: "init", Stock: 5}}
		}, false},
		"warmed and sold out again": {func(j *journal) {
			j.entries = []reservation.Change{{ID: "900-0", Op: "init", Stock: 1}, {ID: "901-0", Op: "reserve", Users: []int64{5}}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := soldOut()
			bubble(t, j, func(t *testing.T, g *Gate) {
				expect(t, g, true, "before")
				j.set(c.reset)
				time.Sleep(poll)
				synctest.Wait()
				expect(t, g, c.want, "after")
				time.Sleep(time.Second)
				synctest.Wait()
				expect(t, g, c.want, "a second later")
				j.write("return", 1, 5)
				time.Sleep(poll)
				synctest.Wait()
				expect(t, g, false, "and it is followed")
			})
		})
	}
}

// While the new log is read page by page, the old one's freshness does not
// vouch for it.
func TestAnotherLogIsTrustedFromItsTailOnly(t *testing.T) {
	j := soldOut()
	bubble(t, j, func(t *testing.T, g *Gate) {
		expect(t, g, true, "before")
		reached, resume := make(chan struct{}), make(chan struct{})
		j.set(func(j *journal) {
			j.entries = nil
			for i := range 2*reservation.LogReadMax - 1 {
				j.entries = append(j.entries, reservation.Change{ID: fmt.Sprintf("%d-0", 900+i), Op: "reserve", Stock: 0})
			}
			j.entries = append(j.entries, reservation.Change{ID: "9000-0", Op: "return", Stock: 1})
			seen := j.reads
			j.hold = func(read int) {
				if read == seen+3 { // the missing entry, the first page, the second
					close(reached)
					<-resume
				}
			}
		})
		<-reached
		expect(t, g, false, "after the first page")
		close(resume)
		synctest.Wait()
		expect(t, g, false, "after the last page")
	})
}

func TestActivitiesAreFoundWhileTheGateRuns(t *testing.T) {
	j := soldOut()
	j.skus = nil
	bubble(t, j, func(t *testing.T, g *Gate) {
		expect(t, g, false, "not known")
		j.set(func(j *journal) { j.skus = []reservation.SKU{{ActivityID: 1, SKUID: 1}, item} })
		time.Sleep(GateConfigDefault.Discover)
		synctest.Wait()
		expect(t, g, true, "found")
		j.set(func(j *journal) { j.skus = nil }) // whatever is listed later, what is known is followed
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expect(t, g, true, "no longer listed")
		j.set(func(j *journal) { j.skus = []reservation.SKU{item} }) // and again: the time begins anew
		time.Sleep(GateConfigDefault.Discover)
		synctest.Wait()
		j.set(func(j *journal) { j.skus = nil })
		time.Sleep(gateForget)
		synctest.Wait()
		expect(t, g, true, "not listed for almost a minute")
		time.Sleep(2 * GateConfigDefault.Discover)
		synctest.Wait()
		expect(t, g, false, "forgotten")
		if g.Knows(item.ActivityID, item.SKUID) {
			t.Error("the gate still knows it")
		}
		reads := j.reads
		time.Sleep(time.Minute)
		synctest.Wait()
		if j.reads != reads {
			t.Error("its log is still read")
		}
		j.set(func(j *journal) { j.skus = []reservation.SKU{item} })
		time.Sleep(GateConfigDefault.Discover)
		synctest.Wait()
		expect(t, g, true, "listed anew, and read from its start")
	})
}

// An entry of the index that names no SKU hides none from the gate.
func TestAnIndexEntryThatIsNoneHidesNoSKUFromTheGate(t *testing.T) {
	j := soldOut()
	bubble(t, unreadable{j}, func(t *testing.T, g *Gate) { expect(t, g, true, "beside it") })
}

// unreadable is a journal beside whose index entries another is none.
type unreadable struct{ *journal }

func (u unreadable) Activities(ctx context.Context) ([]reservation.SKU, error) {
	skus, err := u.journal.Activities(ctx)
	return skus, errors.Join(err, reservation.ErrUnreadable)
}

func TestPositionsBefore(t *testing.T) {
	for give, want := range map[string]string{"0-0": "0-0", "5-7": "5-6", "5-1": "5-0", "5-0": "4-18446744073709551615"} {
		if got, err := before(give); err != nil || got != want {
			t.Errorf("before(%s) = %s, %v, want %s", give, got, err, want)
		}
	}
	for _, give := range []string{"", "x", "5", "5-x", "-1-0"} {
		if got, err := before(give); err == nil {
			t.Errorf("before(%q) = %s", give, got)
		}
	}
}
