package reservation

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// SignalsKeyDefault is the HASH of the posted figures: name by value and time.
const SignalsKeyDefault = "seckill:valves"

// signalsKeep is how long figures nobody renews can be read: above any time
// for which a reader still cares about them.
const signalsKeep = 10 * time.Minute

// Signal is a figure that the asynchronous side posts for access processes.
type Signal struct {
	Name  string
	Value int64
	Age   time.Duration // since it was posted, by Redis' clock; readers' only
}

// PostSignals posts figures; what was posted under their names before is
// replaced, other names stay.
func (s *Store) PostSignals(ctx context.Context, signals []Signal) error {
	args := make([]any, 1, 1+2*len(signals))
	args[0] = signalsKeep.Milliseconds()
	for i := range signals {
		args = append(args, signals[i].Name, signals[i].Value)
	}
	if err := s.postSignals.run(ctx, s.rdb, []string{s.cfg.SignalsKey}, args).Err(); err != nil {
		return wrap("post signals", err)
	}
	return nil
}

// Signals reads what is posted, in no order.
func (s *Store) Signals(ctx context.Context) ([]Signal, error) {
	var now *redis.TimeCmd
	var posted *redis.MapStringStringCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		now, posted = p.Time(ctx), p.HGetAll(ctx, s.cfg.SignalsKey)
		return nil
	})
	if err != nil {
		return nil, wrap("read signals", err)
	}
	signals := make([]Signal, 0, len(posted.Val()))
	for name, text := range posted.Val() {
		value, at, _ := strings.Cut(text, "@")
		v, verr := strconv.ParseInt(value, 10, 64)
		us, terr := strconv.ParseInt(at, 10, 64)
		if verr != nil || terr != nil {
			return nil, fmt.Errorf("read signals: %s is %q, want value@time", name, text)
		}
		signals = append(signals, Signal{Name: name, Value: v, Age: max(0, now.Val().Sub(time.UnixMicro(us)))})
	}
	return signals, nil
}
