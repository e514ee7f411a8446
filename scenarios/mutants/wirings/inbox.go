package wirings

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/seckill"
)

var (
	//go:embed sql/inbox_record.sql
	inboxRecord string
	//go:embed sql/inbox_believe.sql
	inboxBelieve string
	//go:embed sql/undecided_count.sql
	undecidedCount string
)

// inboxOutside records a message in the inbox and commits that, then runs the
// transaction: one that is cut short between the two finds its message known
// when it comes again.
func inboxOutside(w *app.Wiring, fire Fire) {
	var pool *pgxpool.Pool
	sql := statements(edit{"sql/inbox_insert.sql", "", inboxBelieve})
	w.Order = func(_ context.Context, c *order.Config) error {
		pool, c.SQL = c.Pool, sql
		return nil
	}
	w.OrderHandler = func(h mq.Handler) mq.Handler {
		return func(ctx context.Context, batch []mq.Delivery) error {
			messages, at := readable(batch)
			fresh, err := record(ctx, pool, messages)
			if err != nil {
				return err
			}
			var known []string
			seen := map[int]bool{}
			for i := range messages {
				if !fresh[messages[i].MessageID] {
					seen[at[i]] = true
					known = append(known, messages[i].ReservationID)
				}
				delete(fresh, messages[i].MessageID) // a repeat in the batch is one
			}
			var rest []mq.Delivery
			for i := range batch {
				if !seen[i] {
					rest = append(rest, batch[i])
				}
			}
			if err := h(ctx, rest); err != nil {
				return err
			}
			var undecided int64
			if err := pool.QueryRow(ctx, undecidedCount, known).Scan(&undecided); err != nil {
				return fmt.Errorf("count undecided: %w", err)
			}
			if undecided > 0 {
				fire(messages[0].ActivityID, fmt.Sprintf("took %d undecided messages for done", undecided))
			}
			return nil
		}
	}
}

// record puts messages into the inbox and returns the ids it did not know.
func record(ctx context.Context, pool *pgxpool.Pool, messages []seckill.OrderCreateMessage) (map[string]bool, error) {
	ids, topics, reservations := make([]string, len(messages)), make([]string, len(messages)), make([]string, len(messages))
	for i := range messages {
		ids[i], topics[i], reservations[i] = messages[i].MessageID, seckill.TopicOrderCreate, messages[i].ReservationID
	}
	rows, err := pool.Query(ctx, inboxRecord, seckill.GroupOrder, ids, topics, reservations)
	if err != nil {
		return nil, fmt.Errorf("record in the inbox: %w", err)
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("record in the inbox: %w", err)
	}
	fresh := make(map[string]bool, len(recorded))
	for _, id := range recorded {
		fresh[id] = true
	}
	return fresh, nil
}
