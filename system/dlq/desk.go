package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/setaside"
)

// Sender is the broker side: nil means confirmed, any error unknown. Both
// take up to SendMax messages.
type Sender interface {
	SendOrderCreates(messages []seckill.OrderCreateMessage) error
	SendEvents(ctx context.Context, events []seckill.Event) error
}

// SendMax is how many messages one send carries.
const SendMax = 100

// Replay sends one letter again, with the message_id it always had. An event
// is settled by that, an order-create by the decision that follows. After an
// error the message may have been sent; replaying it again is harmless. What
// could change nothing is refused with ErrPointless.
func Replay(ctx context.Context, pool *pgxpool.Pool, sender Sender, id int64) error {
	l, err := Read(ctx, pool, id)
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("replay dead letter %d: %w", id, err) }
	if !l.Open() {
		return fail(pointless(&l))
	}
	send, err := l.readable(ctx, sender)
	if err != nil {
		return fail(err)
	}
	if _, err := pool.Exec(ctx, markReplayed, id); err != nil {
		return fail(err)
	}
	if err := send(); err != nil {
		return fail(err)
	}
	if l.Kind == KindEvent {
		if _, err := pool.Exec(ctx, settle, []int64{id}, "replayed"); err != nil {
			return fail(fmt.Errorf("sent, but not noted: %w", err))
		}
	}
	return nil
}

func pointless(l *Letter) error {
	if l.SettledAt != nil {
		return fmt.Errorf("%w: it was settled (%s)", ErrPointless, l.Note)
	}
	return fmt.Errorf("%w: its reservation is decided (%s)", ErrPointless, l.Decided)
}

// readable returns what sends the letter, or why this build cannot.
func (l *Letter) readable(ctx context.Context, sender Sender) (send func() error, err error) {
	switch l.Kind {
	case KindOrderCreate:
		m, err := seckill.DecodeOrderCreate(l.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: this build cannot read it: %w", ErrPointless, err)
		}
		return func() error { return sender.SendOrderCreates([]seckill.OrderCreateMessage{m}) }, nil
	case KindEvent:
		e, err := seckill.DecodeEvent(l.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: this build cannot read it: %w", ErrPointless, err)
		}
		return func() error { return sender.SendEvents(ctx, []seckill.Event{e}) }, nil
	}
	return nil, fmt.Errorf("%w: a message of kind %s is never sent again", ErrPointless, l.Kind)
}

// SetAside settles one letter for good, with a note that says why. If it is
// the message of a reservation that nothing decided yet, that ends as
// SET_ASIDE in the same transaction; reservationID names it, and is empty if
// only the letter changed. A settled letter is left as it is.
func SetAside(ctx context.Context, pool *pgxpool.Pool, id int64, note string) (reservationID string, err error) {
	if note == "" {
		return "", errors.New("set aside: say why (a note is required)")
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		l, err := read(ctx, tx, readLetterForUpdate, id)
		if err != nil || l.SettledAt != nil {
			return err
		}
		if l.Kind == KindOrderCreate && l.Decided == "" {
			if reservationID, err = endReservation(ctx, tx, &l); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, settle, []int64{id}, storable(note, 500))
		return err
	})
	if errors.Is(err, ErrNoLetter) { // says which
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("set aside dead letter %d: %w", id, err)
	}
	return reservationID, nil
}

func endReservation(ctx context.Context, tx pgx.Tx, l *Letter) (string, error) {
	m, _ := seckill.DecodeOrderCreate(l.Body) // broken or not, what could be read
	r := setaside.OfMessage(&m)
	r.Traceparent = ""
	r.MessageID = seckill.MessageIDOf(r.ReservationID) // the door of the sound message, whatever this one says
	if r.Check() != nil {
		return "", nil
	}
	ended, err := setaside.End(ctx, tx, []setaside.Reservation{r})
	if err != nil || len(ended) == 0 {
		return "", err
	}
	return ended[0], nil
}

// Automatic says how readable letters are replayed by themselves: what failed
// everywhere for minutes may have failed for a reason that is gone.
type Automatic struct {
	Tries int           // a letter
	After time.Duration // before the first, doubled at each
}

// AutomaticDefault replays after 1, 2 and 4 minutes.
var AutomaticDefault = Automatic{Tries: 3, After: time.Minute}

// Validate checks the bounds.
func (a Automatic) Validate() error {
	if a.Tries < 0 || a.Tries > 10 || a.After <= 0 {
		return fmt.Errorf("automatic replay of dead letters: %d tries after %v: must be 0 to 10, and positive", a.Tries, a.After)
	}
	return nil
}

// ReplayDue replays letters of ClassHandedBack that are due, at most SendMax,
// and returns how many the broker confirmed. Several processes share the
// work.
func (a Automatic) ReplayDue(ctx context.Context, pool *pgxpool.Pool, sender Sender) (int, error) {
	var creates []seckill.OrderCreateMessage
	var events []seckill.Event
	var eventIDs []int64
	var id int64
	var kind Kind
	var body []byte
	rows, _ := pool.Query(ctx, claimDue, a.Tries, a.After, SendMax)
	_, err := pgx.ForEachRow(rows, []any{&id, &kind, &body}, func() error {
		switch kind {
		case KindOrderCreate:
			if m, err := seckill.DecodeOrderCreate(body); err == nil {
				creates = append(creates, m)
			}
		case KindEvent:
			if e, err := seckill.DecodeEvent(body); err == nil {
				events, eventIDs = append(events, e), append(eventIDs, id)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("claim dead letters: %w", err)
	}
	sent := 0
	var errs []error
	if len(creates) > 0 {
		if err := sender.SendOrderCreates(creates); err != nil {
			errs = append(errs, fmt.Errorf("replay %d dead letters: %w", len(creates), err))
		} else {
			sent += len(creates)
		}
	}
	if len(events) > 0 {
		if err := sender.SendEvents(ctx, events); err != nil {
			errs = append(errs, fmt.Errorf("replay %d dead events: %w", len(events), err))
		} else if _, err := pool.Exec(ctx, settle, eventIDs, "replayed automatically"); err != nil {
			errs = append(errs, fmt.Errorf("settle dead events: %w", err))
		} else {
			sent += len(events)
		}
	}
	return sent, errors.Join(errs...)
}
