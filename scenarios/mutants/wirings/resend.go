package wirings

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// newMessageIDPerResend names a message anew whenever it is sent again.
func newMessageIDPerResend(w *app.Wiring, fire Fire) {
	w.Producer = func(p app.Producer) app.Producer { return &renamingProducer{p, fire} }
}

type renamingProducer struct {
	app.Producer
	fire Fire
}

func (p *renamingProducer) SendOrderCreates(messages []seckill.OrderCreateMessage) error {
	renamed := slices.Clone(messages)
	for i := range renamed {
		if m := &renamed[i]; m.RetryCount > 0 {
			m.MessageID = seckill.MessageIDPrefix + rand.Text()
			p.fire(m.ActivityID, "renamed the message of "+m.ReservationID)
		}
	}
	return p.Producer.SendOrderCreates(renamed)
}

// noScanner leaves what is due to the client's next try.
func noScanner(w *app.Wiring, fire Fire) {
	w.Store = func(s *reservation.Store) app.Store { return &idleStore{s, fire} }
}

type idleStore struct {
	app.Store
	fire Fire
}

// overdue is the age from which what is pending should have been sent again.
const overdue = 2 * reservation.FirstRetryDefault

func (s *idleStore) ClaimDue(ctx context.Context, activityID, skuID int64, _ int, _ reservation.Backoff) ([]reservation.Reservation, error) {
	var age time.Duration
	age, err := s.OldestPending(ctx, activityID, skuID)
	if err == nil && age > overdue {
		s.fire(activityID, "left alone what is due")
	}
	return nil, err
}
