package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/chaos/frame"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/stack/remoting"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/seckill"
)

// hang is far above what any step here takes.
const hang = 2 * time.Minute

// The real clients, through proxies, to the real servers: the n-th reply is
// lost, what it answered was done, and the client goes on.
func TestLostRepliesOfTheRealServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	servers, err := stack.Up(ctx, stack.Options{BrokerBehindProxy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	at := servers.Addresses()
	t.Run("Works", func(t *testing.T) { works(ctx, t, at) })
	t.Run("EVALSHA", func(t *testing.T) { loseEvalsha(ctx, t, at) })
	t.Run("COMMIT", func(t *testing.T) { loseCommit(ctx, t, at) })
	t.Run("SendMessage", func(t *testing.T) { loseSend(ctx, t, at) })
}

// before starts a proxy that is to lose one reply, the from-th that matches.
func before(t *testing.T, p frame.Protocol, listen, upstream string, from int64, match func(*frame.Reply) bool) (*Proxy, *Losing) {
	t.Helper()
	proxy, err := Start(Config{Name: string(p), Listen: listen, Upstream: upstream, Protocol: p, Watchdog: hang})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
		if n := proxy.Counts().Unread; n > 0 {
			t.Errorf("%d connections were not understood", n)
		}
	})
	losing, err := proxy.Lose(Loss{Match: match, From: from, Every: 1, Times: 1})
	if err != nil {
		t.Fatal(err)
	}
	return proxy, losing
}

func loseEvalsha(ctx context.Context, t *testing.T, at stack.Addresses) {
	proxy, losing := before(t, frame.Redis, AnyAddr, at.Redis, 2, func(r *frame.Reply) bool {
		return r.Request == "EVALSHA" && len(r.Asked) > 2 && r.Asked[2] == "counter"
	})
	through := redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})
	defer through.Close()
	incr := redis.NewScript(`return redis.call('INCR', KEYS[1])`)
	if err := incr.Load(ctx, through).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		err := incr.EvalSha(ctx, through, []string{"counter"}).Err()
		if lost := i == 1; (err != nil) != lost {
			t.Errorf("call %d: error %v", i+1, err)
		}
	}
	direct := redis.NewClient(&redis.Options{Addr: at.Redis})
	defer direct.Close()
	if n, err := direct.Get(ctx, "counter").Int(); n != 3 || err != nil || losing.Lost() != 1 {
		t.Errorf("the script ran %d times (%v), %d replies lost; want 3 and 1", n, err, losing.Lost())
	}
}

func loseCommit(ctx context.Context, t *testing.T, at stack.Addresses) {
	addr, err := url.Parse(at.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := pgx.Connect(ctx, at.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(ctx)
	if _, err := direct.Exec(ctx, "CREATE TABLE kept (n int PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	upstream := addr.Host
	for i, way := range []struct {
		how string
		do  func(*pgx.Conn, int) error
	}{
		{"a transaction's Commit", func(c *pgx.Conn, n int) error {
			tx, err := c.Begin(ctx)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "INSERT INTO kept VALUES ($1)", n); err != nil {
				return err
			}
			return tx.Commit(ctx)
		}},
		{"one pipeline", func(c *pgx.Conn, n int) error {
			b := &pgx.Batch{}
			b.Queue("begin")
			b.Queue("INSERT INTO kept VALUES ($1)", n)
			b.Queue("commit")
			return c.SendBatch(ctx, b).Close()
		}},
		{"the simple protocol", func(c *pgx.Conn, n int) error {
			_, err := c.Exec(ctx, fmt.Sprintf("BEGIN; INSERT INTO kept VALUES (%d); COMMIT", n))
			return err
		}},
	} {
		proxy, losing := before(t, frame.Postgres, AnyAddr, upstream, 2, func(r *frame.Reply) bool { return r.Request == "COMMIT" })
		through := *addr
		through.Host = proxy.Addr()
		for j := range 3 {
			c, err := pgx.Connect(ctx, through.String())
			if err != nil {
				t.Fatal(err)
			}
			err = way.do(c, 10*i+j)
			c.Close(ctx)
			if lost := j == 1; (err != nil) != lost {
				t.Errorf("%s, transaction %d: error %v", way.how, j+1, err)
			}
		}
		var n int
		if err := direct.QueryRow(ctx, "SELECT count(*) FROM kept WHERE n BETWEEN $1 AND $1 + 2", 10*i).Scan(&n); n != 3 || err != nil || losing.Lost() != 1 {
			t.Errorf("%s: %d committed (%v), %d replies lost; want 3 and 1", way.how, n, err, losing.Lost())
		}
	}
}

func loseSend(ctx context.Context, t *testing.T, at stack.Addresses) {
	topic := seckill.TopicOrderCreate
	proxy, losing := before(t, frame.RocketMQ, at.Broker, at.BrokerDirect, 2, func(r *frame.Reply) bool {
		return (r.Request == frame.SendMessage || r.Request == frame.SendBatchMessage) && len(r.Asked) == 1 && r.Asked[0] == topic && r.Answered[0] == "0"
	})
	cfg := mq.Config{NameServer: at.NameServer}
	if err := mq.EnsureTopics(ctx, cfg, at.BrokerDirect); err != nil {
		t.Fatal(err)
	}
	producer, err := mq.NewProducer(cfg, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	sent := 0
	for i, size := range []int{1, 2, 3} { // one is sent otherwise than several
		batch := make([]seckill.OrderCreateMessage, size)
		for j := range batch {
			id := fmt.Sprintf("r%d-%d", i, j)
			batch[j] = seckill.OrderCreateMessage{SchemaVersion: 1, MessageID: seckill.MessageIDOf(id), ReservationID: id, MessageKey: id}
		}
		err := producer.SendOrderCreates(batch)
		if lost := i == 1; errors.Is(err, mq.ErrUnknown) != lost {
			t.Errorf("send %d: error %v", i+1, err)
		}
		sent += size
	}
	if n := stored(ctx, t, at.BrokerDirect, topic); n != sent || losing.Lost() != 1 {
		t.Errorf("%d messages stored, %d replies lost; want %d and 1", n, losing.Lost(), sent)
	}
	if proxy.Counts().Replies == 0 {
		t.Error("no reply passed")
	}
}

// stored counts a topic's messages.
func stored(ctx context.Context, t *testing.T, broker, topic string) int {
	t.Helper()
	conn, err := remoting.Dial(ctx, broker)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	total := 0
	for queue := range mq.TopicQueues {
		const getMaxOffset = 30
		h, _, err := conn.Call(ctx, getMaxOffset, map[string]string{"topic": topic, "queueId": strconv.Itoa(queue)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(h.Fields["offset"])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

// What every fault asks before and after itself.
func works(ctx context.Context, t *testing.T, at stack.Addresses) {
	addr, err := url.Parse(at.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	for protocol, upstream := range map[frame.Protocol]string{frame.Redis: at.Redis, frame.Postgres: addr.Host, frame.RocketMQ: at.BrokerDirect} {
		p, err := Start(Config{Name: string(protocol), Listen: AnyAddr, Upstream: upstream, Protocol: protocol, Watchdog: hang})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Works(ctx); err != nil {
			t.Error(err)
		}
		if n := p.Counts().Unread; n > 0 {
			t.Errorf("%s: the question was not understood", protocol)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
