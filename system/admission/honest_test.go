package admission

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/reservation"
)

// I10, contracts 3: over random sales with returns, and a Redis that answers
// late or not at all, the gate never refuses while a unit may be reserved,
// nor anyone who holds a reservation; and when Redis answers again it closes.
func TestTheGateIsHonest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			what  int
			after time.Duration
			delay time.Duration
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.IntRange(0, 5).Draw(rt, "what"),
				time.Duration(rapid.IntRange(0, 260).Draw(rt, "after ms")) * time.Millisecond,
				time.Duration(rapid.IntRange(0, 400).Draw(rt, "delay ms")) * time.Millisecond}
		}), 1, 60).Draw(rt, "steps")
		failure := ""
		synctest.Test(t, func(t *testing.T) {
			j := &journal{skus: []reservation.SKU{item}}
			stock := int64(1)
			j.write("init", stock)
			var openAt time.Time // as the apply script sets it
			members := []int64{winner}
			g := NewGate(GateConfigDefault, j, slog.New(slog.DiscardHandler))
			time.Sleep(time.Millisecond)
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { g.Run(ctx) })
			reservable := func() bool { return stock > 0 && !time.Now().Before(openAt) }
			j.write("reserve", 0, winner)
			stock = 0
			for _, s := range steps {
				switch s.what {
				case 0, 1: // someone tries to buy
					if reservable() {
						stock--
						u := int64(1000 + len(members))
						members = append(members, u)
						j.write("reserve", stock, u)
					}
				case 2: // a compensation
					if stock++; stock == 1 {
						openAt = time.Now().Add(reservation.ReopenDefault)
					}
					j.write("return", stock, members[0])
				case 3:
					j.set(func(j *journal) { j.delay = s.delay })
				case 4:
					j.set(func(j *journal) { j.err = errors.New("down") })
				case 5:
					j.set(func(j *journal) { j.delay, j.err = 0, nil })
				}
				time.Sleep(s.after)
				if reservable() && g.refuses(stranger) {
					failure = "a stranger was refused while a unit could be reserved"
				}
				for _, m := range members {
					if g.refuses(m) {
						failure = "a member was refused"
					}
				}
			}
			j.set(func(j *journal) { j.delay, j.err = 0, nil })
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if g.refuses(stranger) != (stock == 0) {
				failure = "the gate did not find back to the truth"
			}
			cancel()
			running.Wait()
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}
