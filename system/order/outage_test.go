package order

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

func TestBackendsKilledAtRandomMomentsLoseAndDoubleNothing(t *testing.T) { // R7.4.5, R7.10.4, R7.10.5, R7.10.6, R7.11.4, R7.5.3, R9.5.9, R11.7
	f := setup(t)
	const orders = 3000
	sku := f.sku(orders)
	var m []seckill.OrderCreateMessage
	for user := int64(1); user <= orders; user++ {
		m = append(m, f.reserve(sku, user))
		if user%10 == 0 {
			m = append(m, f.reserve(sku, user)) // a second reservation
		}
	}
	rng := rand.New(rand.NewPCG(7, 57))
	rng.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })

	// The killer sits at the fault points: each is a moment at which a
	// transaction is known to be before, in or after something.
	admin := systest.Pool(t, postgres.Config{URL: f.url, ApplicationName: "killer", MaxConns: 4})
	killRNG := rand.New(rand.NewPCG(7, 58))
	var mu sync.Mutex
	var kills atomic.Int64
	p := f.processor(func(c *Config) {
		c.Hit = func(seckill.FaultPoint) {
			mu.Lock()
			dice := killRNG.IntN(4)
			mu.Unlock()
			if dice != 0 || kills.Load() > 150 {
				return
			}
			var n int64
			err := admin.QueryRow(context.WithoutCancel(t.Context()), `
				SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM (
				    SELECT pid FROM pg_stat_activity
				    WHERE datname = current_database() AND application_name = 'consumer' AND state <> 'idle'
				    ORDER BY random() LIMIT 1) AS victims`).Scan(&n)
			if err != nil {
				t.Error(err)
			}
			kills.Add(n)
		}
	})
	deliveries := f.deliver(m...)
	f.race(p, rng, 2, 60, deliveries)
	f.race(f.processor(), rng, 2, 200, deliveries) // the broker does not know either

	want := statuses{seckill.StatusOrderCreated: orders, seckill.StatusRejectedDuplicateUser: orders / 10}
	if diff := cmp.Diff(want, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
	f.assertConserved(sku)
	if kills.Load() < 20 || p.Stats().TransientFails.Load() == 0 || p.Stats().Parked.Load() != 0 {
		t.Errorf("%d kills, %d back-offs, %d parked", kills.Load(), p.Stats().TransientFails.Load(), p.Stats().Parked.Load())
	}
	t.Logf("%d kills, %d back-offs, %d commits unknown", kills.Load(), p.Stats().TransientFails.Load(), p.Stats().CommitsUnknown.Load())
}

// loseCommitReply is a connection on which, once armed, a COMMIT reaches the
// server, is answered, and the answer is lost with the connection.
type loseCommitReply struct {
	net.Conn
	armed  *atomic.Bool
	losing bool
}

func (c *loseCommitReply) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit\x00")) && c.armed.CompareAndSwap(true, false) {
		c.losing = true
	}
	return c.Conn.Write(b)
}

func (c *loseCommitReply) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.losing && err == nil {
		c.Conn.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestALostCommitReplyIsNotAFailure(t *testing.T) { // R7.6.3, R7.10.6, R11.8
	f := setup(t)
	sku := f.sku(10)
	config, err := pgxpool.ParseConfig(f.url)
	if err != nil {
		t.Fatal(err)
	}
	var armed atomic.Bool
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &loseCommitReply{Conn: conn, armed: &armed}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	p := f.processor(func(c *Config) { c.Pool = pool })
	armed.Store(true)
	f.process(p, f.deliver(f.reserve(sku, 1), f.reserve(sku, 2), f.reserve(sku, 2)))
	want := statuses{seckill.StatusOrderCreated: 2, seckill.StatusRejectedDuplicateUser: 1}
	if diff := cmp.Diff(want, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
	f.assertConserved(sku)
	s := p.Stats()
	if s.CommitsUnknown.Load() != 1 || s.Duplicates.Load() != 3 || s.Bisections.Load() != 0 || s.Parked.Load() != 0 {
		t.Errorf("unknown commits %d, duplicates %d, bisections %d, parked %d",
			s.CommitsUnknown.Load(), s.Duplicates.Load(), s.Bisections.Load(), s.Parked.Load())
	}
}

func TestADrainEndsTheWaitingAndDecidesNothing(t *testing.T) {
	f := setup(t)
	sku := f.sku(1)
	holder, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	sql, err := loadStatements(SQL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), sql.gateExclusive, sku.ActivityID, sku.SKUID); err != nil {
		t.Fatal(err)
	}
	ctx, drain := context.WithCancel(t.Context())
	waits := 0
	p := f.processor(func(c *Config) {
		c.TxTimeout = 50 * time.Millisecond
		c.Wait = func(ctx context.Context, d time.Duration) error {
			if waits++; waits == 3 {
				drain()
			}
			return ctx.Err()
		}
	})
	deliveries := f.deliver(f.reserve(sku, 1))
	if err := p.Process(ctx, deliveries); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("drained process: %v, want the cause of the waiting", err)
	}
	if err := p.Process(ctx, deliveries); !errors.Is(err, context.Canceled) {
		t.Fatalf("process after the drain: %v", err)
	}
	if len(f.statuses(sku)) != 0 || waits != 3 || p.Stats().Parked.Load() != 0 {
		t.Errorf("%v after %d waits", f.statuses(sku), waits)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.process(f.processor(), deliveries)
	f.assertConserved(sku)
}

func TestAShortageInDoubtIsWaitedOut(t *testing.T) { // R9.3.2
	f := setup(t)
	sku := f.sku(1)
	holder, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context()))
	// Somebody outside the gate holds the last token.
	if _, err := holder.Exec(t.Context(), `SELECT FROM inventory_token WHERE activity_id = $1 FOR UPDATE`, sku.ActivityID); err != nil {
		t.Fatal(err)
	}
	p := f.processor(func(c *Config) {
		c.Wait = func(ctx context.Context, d time.Duration) error { return holder.Rollback(ctx) }
	})
	f.process(p, f.deliver(f.reserve(sku, 1)))
	if diff := cmp.Diff(statuses{seckill.StatusOrderCreated: 1}, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
	if got := p.Stats().Reruns.Load(); got != RerunLimitDefault {
		t.Errorf("%d reruns before the back-off, want %d", got, RerunLimitDefault)
	}
	f.assertConserved(sku)
}

func TestAnUnmigratedDatabaseParksNothing(t *testing.T) {
	f := setup(t)
	sku := f.sku(1)
	f.exec(`ALTER TABLE orders RENAME TO elsewhere`)
	p := f.processor(func(c *Config) {
		c.Wait = func(ctx context.Context, d time.Duration) error {
			_, err := f.pool.Exec(ctx, `ALTER TABLE elsewhere RENAME TO orders`)
			return err
		}
	})
	f.process(p, f.deliver(f.reserve(sku, 1)))
	if diff := cmp.Diff(statuses{seckill.StatusOrderCreated: 1}, f.statuses(sku)); diff != "" {
		t.Error(diff)
	}
}

func TestBackoffGrowsWithinItsBounds(t *testing.T) {
	p, err := New(Config{
		Pool: &pgxpool.Pool{}, IDs: &seckill.IDGenerator{}, Rand: rand.New(rand.NewPCG(1, 1)),
		BackoffMin: 20 * time.Millisecond, BackoffMax: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, full := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
		full *= time.Millisecond
		if got := p.backoff(n); got < full/2 || got > full {
			t.Errorf("back-off %d is %v, want %v to %v", n, got, full/2, full)
		}
	}
	if got := p.backoff(1 << 30); got > time.Second {
		t.Errorf("back-off far out is %v", got)
	}
}

func TestFailuresAreReadAsTheyShould(t *testing.T) { // R9.4.2
	for code, want := range map[string]failure{
		"40001": lostRace, "40P01": lostRace, "55P03": lostRace,
		"23505": collision,
		"22021": refused, "22P05": refused, "23502": refused, "23514": refused,
		"57P01": transient, "57014": transient, "08006": transient, "53300": transient, "53100": transient,
		"42P01": transient, "XX000": transient,
	} {
		if got := classify(pgError(code)); got != want {
			t.Errorf("%s is %d, want %d", code, got, want)
		}
	}
	for _, err := range []error{context.DeadlineExceeded, io.ErrUnexpectedEOF, pgx.ErrTxClosed} {
		if got := classify(err); got != transient {
			t.Errorf("%v is %d, want transient", err, got)
		}
	}
}

func pgError(code string) error { return &pgconn.PgError{Code: code} }
