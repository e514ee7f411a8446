package snapshot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// looks plays one backlog a look; the last one repeats. -1 is a failed look.
func looks(pending ...int64) func(context.Context) (Backlog, error) {
	i := -1
	return func(context.Context) (Backlog, error) {
		i = min(i+1, len(pending)-1)
		if pending[i] < 0 {
			return Backlog{}, errors.New("store is gone")
		}
		return Backlog{Pending: pending[i]}, nil
	}
}

func TestQuiescenceNeedsThreeQuietLooksRunning(t *testing.T) {
	const interval = 200 * time.Millisecond
	for name, c := range map[string]struct {
		looks     []int64
		limit     time.Duration
		quiescent bool
		waited    time.Duration
		last      int64
	}{
		"quiet from the start":             {[]int64{0}, time.Second, true, 0, 0},
		"quiet after four looks":           {[]int64{5, 3, 2, 1, 0}, 10 * time.Second, true, 4 * interval, 0},
		"two quiet looks do not count":     {[]int64{0, 0, 1, 0}, 10 * time.Second, true, 3 * interval, 0},
		"a failed look breaks the row":     {[]int64{0, 0, -1, 0}, 10 * time.Second, true, 3 * interval, 0},
		"never quiet":                      {[]int64{7}, time.Second, false, time.Second, 7},
		"a store that stays gone":          {[]int64{4, -1}, time.Second, false, time.Second, 4},
		"quiet begins just before its end": {[]int64{1, 1, 1, 1, 0}, time.Second, true, 4 * interval, 0},
		"quiet breaks beyond its end":      {[]int64{1, 1, 1, 1, 0, 1}, time.Second, false, time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := 0
				q, err := quiesce(t.Context(), looks(c.looks...), time.Now(), c.limit, interval, func(Backlog) { told++ })
				if err != nil || q.Quiescent != c.quiescent || q.Waited != c.waited || q.Last.Pending != c.last || told == 0 {
					t.Errorf("%+v, %v, told %d", q, err, told)
				}
			})
		})
	}
}

func TestQuiescenceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := quiesce(ctx, looks(1), time.Now(), time.Hour, 200*time.Millisecond, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
