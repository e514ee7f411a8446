package app

import (
	"context"
	"io/fs"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Store is all that the roles ask of Redis.
type Store interface {
	Reserve(ctx context.Context, activityID, skuID int64, c []reservation.Candidate) (reservation.Batch, error)
	MarkSent(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
	ClaimDue(ctx context.Context, activityID, skuID int64, limit int, b reservation.Backoff) ([]reservation.Reservation, error)
	NoteFailure(ctx context.Context, activityID, skuID int64, reservationIDs []string, code string) error
	SetAside(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
	PendingCounts(ctx context.Context, skus []reservation.SKU) ([]int64, error)
	OldestPending(ctx context.Context, activityID, skuID int64) (time.Duration, error)
	PostSignals(ctx context.Context, signals []reservation.Signal) error
	Signals(ctx context.Context) ([]reservation.Signal, error)
	Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (reservation.Applied, error)
	Activities(ctx context.Context) ([]reservation.SKU, error)
	Forget(ctx context.Context, skus []reservation.SKU, after time.Duration) ([]reservation.SKU, error)
	ReadLog(ctx context.Context, activityID, skuID int64, after string) ([]reservation.Change, bool, error)
	LookupRequest(ctx context.Context, activityID, skuID int64, requestID string) (reservation.Reservation, bool, error)
	LookupReservation(ctx context.Context, activityID, skuID int64, reservationID string) (reservation.Reservation, bool, error)
	Restore(ctx context.Context, d reservation.Decided) (int, error)
	Stock(ctx context.Context, activityID, skuID int64) (int64, error)
	Books(ctx context.Context, activityID, skuID int64) (reservation.Books, error)
	LookupReservations(ctx context.Context, activityID, skuID int64, ids []string) (map[string]reservation.Reservation, error)
	Replication(ctx context.Context) (reservation.Replication, error)
}

// Producer is all that the roles ask of the broker's sending side.
type Producer interface {
	SendOrderCreates(messages []seckill.OrderCreateMessage) error
	SendEvents(ctx context.Context, events []seckill.Event) error
	SendExpiryCheck(ctx context.Context, c seckill.ExpiryCheck, after time.Duration) error
}

// Wiring is what may be replaced: scripts, a wrapper around each port, and
// what the order processor is made of.
type Wiring struct {
	Scripts      fs.FS
	Store        func(*reservation.Store) Store
	Producer     func(Producer) Producer
	OrderHandler func(mq.Handler) mq.Handler
	EventHandler func(mq.Handler) mq.Handler
	// Order is called before OrderHandler, with what the processor will be made
	// of but for zero values. Its context is the role's.
	Order func(context.Context, *order.Config) error
	// Queries serves the orders role's clients.
	Queries func(fasthttp.RequestHandler) fasthttp.RequestHandler
	Hit     func(seckill.FaultPoint) // fault points
}

// DefaultWiring is the system as specified; hit is faultpoint.Hit.
func DefaultWiring(hit func(seckill.FaultPoint)) Wiring {
	same := func(h mq.Handler) mq.Handler { return h }
	return Wiring{
		Scripts:      lua.FS,
		Store:        func(s *reservation.Store) Store { return s },
		Producer:     func(p Producer) Producer { return p },
		OrderHandler: same,
		EventHandler: same,
		Order:        func(context.Context, *order.Config) error { return nil },
		Queries:      func(h fasthttp.RequestHandler) fasthttp.RequestHandler { return h },
		Hit:          hit,
	}
}
