package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/setaside"
	"github.com/hotsku/hotsku/system/telemetry"
)

// scannerPool bounds the scanner's connections: one hands over, one looks
// whether the database is there.
const scannerPool = 2

func (a *App) runScanner(ctx context.Context, p *process) error {
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	sender, err := p.producer(ctx, seckill.TopicOrderCreate, patientSend)
	if err != nil {
		return err
	}
	// Resending needs no database, and one that is away is what the valves are
	// to be told of: the scanner starts without it.
	db := a.cfg.Database(string(p.role))
	db.MaxConns = scannerPool
	pool, err := postgres.OpenLater(ctx, db)
	if errors.As(err, new(*pgconn.ParseConfigError)) {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return err
	}
	p.onClose(closer(pool.Close))
	poolMetrics(p.metrics, pool)
	s, err := scanner.New(scanner.Params{Config: a.cfg.Scanner, Store: store, Sender: sender, Desk: desk{pool},
		ErrorCode: mq.ErrorCode, Now: time.Now, Log: a.log, Hit: a.wiring.Hit})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	publisher, err := a.publisher(p, store, pool)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	telemetry.Counter(p.metrics, "reservation_retry_count", "Reservations claimed for a resend.", nil, &s.Stats.Claimed)
	telemetry.Counter(p.metrics, "scanner_resent_total", "Resends confirmed.", nil, &s.Stats.Resent)
	telemetry.Counter(p.metrics, "scanner_unknown_total", "Resends without a confirmation.", nil, &s.Stats.Unknown)
	telemetry.Counter(p.metrics, "scanner_unreadable_total", "Claims of reservations that cannot be read.", nil, &s.Stats.Unreadable)
	telemetry.Counter(p.metrics, "reservation_handed_over_total", "Reservations set aside for a person.", nil, &s.Stats.HandedOver)
	var publishing sync.WaitGroup
	publishing.Go(func() { publisher.Run(ctx) })
	p.announce("")
	s.Run(ctx)
	publishing.Wait()
	return nil
}

// desk sets reservations aside in PostgreSQL.
type desk struct{ pool *pgxpool.Pool }

func (d desk) SetAside(ctx context.Context, reservations []reservation.Reservation) ([]string, error) {
	given := make([]setaside.Reservation, len(reservations))
	for i, r := range reservations {
		given[i] = setaside.Reservation{ReservationID: r.ReservationID, MessageID: r.MessageID, RequestID: r.RequestID,
			ActivityID: r.ActivityID, SKUID: r.SKUID, UserID: r.UserID, ReservedAt: r.ReservedAt, Traceparent: r.Traceparent}
	}
	return setaside.End(ctx, d.pool, given)
}
