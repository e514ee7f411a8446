package activity_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func setup(t *testing.T) (*activity.Store, *pgxpool.Pool) {
	t.Helper()
	pool := systest.Pool(t, postgres.Config{URL: systest.Database(t)})
	store, err := activity.New(pool, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return store, pool
}

func params() activity.Params {
	return activity.Params{
		ActivityID: 7, SKUID: 70, Stock: 1000, PriceCents: 19900,
		StartsAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), EndsAt: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC),
	}
}

func TestCreateMakesOneTokenAUnit(t *testing.T) { // R6.7a, R6.7c
	store, pool := setup(t)
	if err := store.Create(t.Context(), params()); err != nil {
		t.Fatal(err)
	}
	got, err := store.Show(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	got.UpdatedAt = time.Time{}
	p := params()
	want := activity.Summary{
		ActivityID: 7, Status: seckill.ActivityRunning, Version: 1, StartsAt: p.StartsAt, EndsAt: p.EndsAt,
		SKUs: []activity.SKU{{
			SKUID: 70, Stock: 1000, PriceCents: 19900, Allocator: "token",
			Tokens:       map[seckill.TokenStatus]int64{seckill.TokenAvailable: 1000},
			Orders:       map[seckill.OrderStatus]int64{},
			Reservations: map[seckill.ReservationStatus]int64{},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary differs (-want +got):\n%s", diff)
	}
	var issued, sorted int
	query := `SELECT (SELECT sum(delta) FROM inventory_ledger WHERE entry_type = 'ISSUE'),
	                 (SELECT count(*) FROM (SELECT token_id > lag(token_id) OVER (ORDER BY seq) AS up FROM inventory_token) AS o WHERE up)`
	if err := pool.QueryRow(t.Context(), query).Scan(&issued, &sorted); err != nil {
		t.Fatal(err)
	}
	if issued != 1000 {
		t.Errorf("ledger issues %d, want 1000", issued)
	}
	if sorted < 350 || sorted > 650 {
		t.Errorf("%d of 999 token ids ascend with seq: they are not random", sorted)
	}
}

func TestCreateWithFewerTokensThanStock(t *testing.T) {
	store, _ := setup(t)
	p := params()
	p.Tokens = 10
	if err := store.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	got, err := store.Show(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if sku := got.SKUs[0]; sku.Stock != 1000 || sku.Tokens[seckill.TokenAvailable] != 10 {
		t.Errorf("stock %d, tokens %v", sku.Stock, sku.Tokens)
	}
}

func TestCreateRefusesAnExistingActivityAndChangesNothing(t *testing.T) {
	store, pool := setup(t)
	if err := store.Create(t.Context(), params()); err != nil {
		t.Fatal(err)
	}
	again := params()
	again.SKUID, again.Stock = 71, 5
	if err := store.Create(t.Context(), again); !errors.Is(err, activity.ErrExists) {
		t.Fatalf("second create: %v, want ErrExists", err)
	}
	var tokens int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM inventory_token`).Scan(&tokens); err != nil {
		t.Fatal(err)
	}
	if tokens != 1000 {
		t.Errorf("%d tokens after the refused create, want 1000", tokens)
	}
}

func TestCreateNamesTheWrongField(t *testing.T) {
	for field, spoil := range map[string]func(*activity.Params){
		"activity id": func(p *activity.Params) { p.ActivityID = 0 },
		"sku id":      func(p *activity.Params) { p.SKUID = -1 },
		"stock":       func(p *activity.Params) { p.Stock = -1 },
		"tokens":      func(p *activity.Params) { p.Tokens = 1001 },
		"price":       func(p *activity.Params) { p.PriceCents = -1 },
		"start":       func(p *activity.Params) { p.EndsAt = p.StartsAt },
	} {
		p := params()
		spoil(&p)
		var wrong *seckill.FieldError
		if err := p.Validate(); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestCloseIsIdempotentAndKnowsWhatIsThere(t *testing.T) {
	store, _ := setup(t)
	if err := store.Close(t.Context(), 7); !errors.Is(err, activity.ErrNotFound) {
		t.Fatalf("close of nothing: %v, want ErrNotFound", err)
	}
	if _, err := store.Show(t.Context(), 7); !errors.Is(err, activity.ErrNotFound) {
		t.Fatalf("show of nothing: %v, want ErrNotFound", err)
	}
	if err := store.Create(t.Context(), params()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := store.Close(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Show(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != seckill.ActivityClosed {
		t.Errorf("status %s after close", got.Status)
	}
}

func TestCloseWaitsForOrderTransactionsUnderWay(t *testing.T) {
	store, pool := setup(t)
	if err := store.Create(t.Context(), params()); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock_shared(inventory_gate(7, 70))`); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- store.Close(t.Context(), 7) }()
	// The server itself says that Close stands at the gate.
	for waiting := 0; waiting == 0; {
		query := `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
		if err := pool.QueryRow(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("close returned (%v) while an order transaction held the gate", err)
	default:
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
}
