package order

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/system/order/allocate"
)

// columns holds decisions column by column, as the set-based statements take
// them.
type columns struct {
	reservations, messages, requests, statuses, orders []string
	users, units                                       []int64
	returns                                            []bool
	reservedAt                                         []time.Time
	eventTypes, payloads                               []string
}

func makeColumns(n int) *columns {
	return &columns{
		reservations: make([]string, 0, n), messages: make([]string, 0, n), requests: make([]string, 0, n),
		statuses: make([]string, 0, n), orders: make([]string, 0, n),
		users: make([]int64, 0, n), units: make([]int64, 0, n),
		returns: make([]bool, 0, n), reservedAt: make([]time.Time, 0, n),
		eventTypes: make([]string, 0, n), payloads: make([]string, 0, n),
	}
}

func (c *columns) add(d *decision, o offer) error {
	e := d.event(o)
	payload, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event of %s: %w", d.ReservationID, err)
	}
	c.reservations = append(c.reservations, d.ReservationID)
	c.messages = append(c.messages, d.MessageID)
	c.requests = append(c.requests, d.RequestID)
	c.statuses = append(c.statuses, string(d.status))
	c.orders = append(c.orders, d.orderID)
	c.users = append(c.users, d.UserID)
	c.units = append(c.units, d.unit)
	c.returns = append(c.returns, e.ReturnStock)
	c.reservedAt = append(c.reservedAt, d.ReservedAt)
	c.eventTypes = append(c.eventTypes, e.EventType)
	c.payloads = append(c.payloads, string(payload))
	return nil
}

// write makes the second round trip: everything that follows from the
// decisions. Rows go in by user id, so that concurrent batches take the
// entries of the one-order-a-user index in one order.
func (p *Processor) write(ctx context.Context, tx pgx.Tx, sku allocate.SKU, o offer, decisions []decision) error {
	if len(decisions) == 0 {
		return nil
	}
	slices.SortFunc(decisions, func(x, y decision) int { return cmp.Compare(x.UserID, y.UserID) })
	all, won := makeColumns(len(decisions)), makeColumns(len(decisions))
	for i := range decisions {
		d := &decisions[i]
		if err := all.add(d, o); err != nil {
			return err
		}
		if d.orderID != "" {
			won.orders = append(won.orders, d.orderID)
			won.users = append(won.users, d.UserID)
			won.requests = append(won.requests, d.RequestID)
			won.reservations = append(won.reservations, d.ReservationID)
			won.units = append(won.units, d.unit)
		}
	}

	b := &pgx.Batch{}
	if len(won.orders) > 0 {
		b.Queue(p.sql.ordersInsert, sku.ActivityID, sku.SKUID, o.priceCents,
			won.orders, won.users, won.requests, won.reservations, won.units, o.paymentDue)
		p.cfg.Allocator.Claim(b, allocate.Claims{Units: won.units, OrderIDs: won.orders, ReservationIDs: won.reservations})
		b.Queue(p.sql.itemsInsert, won.orders, sku.SKUID, o.priceCents)
	}
	b.Queue(p.sql.reservationsInsert, sku.ActivityID, sku.SKUID, all.reservations, all.messages, all.users,
		all.requests, all.statuses, all.orders, all.returns, all.reservedAt)
	b.Queue(p.sql.ledgerInsert, sku.ActivityID, sku.SKUID, all.reservations, all.orders, all.units, all.returns)
	b.Queue(p.sql.outboxInsert, all.eventTypes, all.reservations, all.payloads)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("second round trip: %w", err)
	}
	return nil
}
