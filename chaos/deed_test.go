package chaos

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newDeed(felt *int64) *Deed {
	load := make(chan struct{})
	close(load)
	return &Deed{Called: "deed", On: "redis", Moment: Moment{load, time.Second},
		Check: func(context.Context) error { return nil },
		Do: func(context.Context) (map[string]int64, string, error) {
			*felt += 2
			return map[string]int64{"done": 3}, "three things", nil
		},
		Felt: func(context.Context) (int64, error) { return *felt, nil }}
}

func TestADeedIsDoneAtItsMomentAndFelt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		felt := int64(5)
		d, began := newDeed(&felt), time.Now()
		if err := d.Inject(t.Context()); err != nil || time.Since(began) != time.Second {
			t.Errorf("done after %v: %v", time.Since(began), err)
		}
		hits, detail, err := d.WaitUntilItBites(t.Context())
		if err != nil || !maps.Equal(hits, map[string]int64{"done": 3, "felt": 2}) || !strings.Contains(detail, "1s into the load: three things") {
			t.Errorf("hits %v, %q, %v", hits, detail, err)
		}
		if err := d.Heal(t.Context()); err != nil {
			t.Errorf("nothing to take back: %v", err)
		}
		if d.Undo = fail; !errors.Is(d.Heal(t.Context()), errBroken) {
			t.Error("it was not taken back, and nobody says so")
		}
		if d.Check = fail; !errors.Is(d.Works(t.Context()), errBroken) {
			t.Error("what does not work is taken for what does")
		}
	})
}

func TestADeedThatNobodyFeelsDoesNotBite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		felt := int64(0)
		d := newDeed(&felt)
		d.Felt = func(context.Context) (int64, error) { return 7, nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.Inject(ctx); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.WaitUntilItBites(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
}
