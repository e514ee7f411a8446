package wirings

import (
	"context"
	"slices"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/seckill"
)

// readable are the messages of a batch that can be read, and where they are
// in it.
func readable(batch []mq.Delivery) (messages []seckill.OrderCreateMessage, at []int) {
	for i := range batch {
		if m, err := seckill.DecodeOrderCreate(batch[i].Body); err == nil {
			messages, at = append(messages, m), append(at, i)
		}
	}
	return messages, at
}

// saleOf is the activity that a batch is about.
func saleOf(batch []mq.Delivery) int64 {
	if messages, _ := readable(batch); len(messages) > 0 {
		return messages[0].ActivityID
	}
	return 0
}

// ackedAheadMax bounds the batches that are acknowledged and not begun.
const ackedAheadMax = 64

// ackBeforeCommit acknowledges a batch when it is taken in, and runs the
// transaction after.
func ackBeforeCommit(w *app.Wiring, fire Fire) {
	w.OrderHandler = func(h mq.Handler) mq.Handler {
		later := make(chan []mq.Delivery, ackedAheadMax)
		go func() { // for the process's life
			for batch := range later {
				_ = h(context.Background(), batch) // nobody is left who could be told
			}
		}()
		return func(ctx context.Context, batch []mq.Delivery) error {
			own := slices.Clone(batch)
			for i := range own {
				own[i].Body = slices.Clone(own[i].Body)
			}
			select {
			case later <- own:
				fire(saleOf(own), "acknowledged a batch it had not begun")
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
