package scanner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/scanner"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

// own shows the scanners one SKU of a Redis that other tests use too.
type own struct {
	*reservation.Store
	sku reservation.SKU
}

func (o own) Activities(context.Context) ([]reservation.SKU, error) {
	return []reservation.SKU{o.sku}, nil
}

// confirmed is a producer that notes what the broker confirmed, and loses
// the confirmation of its first sends.
type confirmed struct {
	*mq.Producer
	lose int

	mu   sync.Mutex
	sent map[string]int
}

func (c *confirmed) SendOrderCreates(m []seckill.OrderCreateMessage) error {
	if err := c.Producer.SendOrderCreates(m); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range m {
		c.sent[m[i].MessageID]++
	}
	if c.lose--; c.lose >= 0 {
		return errors.New("the connection was cut")
	}
	return nil
}

// R7.4.4 R7.8.4 R13.4.1: on the real servers several scanners bring home what
// nobody sent, each under its own message id; only those whose confirmation
// was lost are sent again.
func TestScannersShareTheWorkOnRealServers(t *testing.T) {
	addr := systest.Redis(t)
	brokerAddr := os.Getenv("HOTSKU_TEST_BROKER")
	if brokerAddr == "" {
		t.Fatal("HOTSKU_TEST_BROKER is not set: run `make test`, or `eval \"$(bin/hotsku up --stack dev --env)\"`")
	}
	cfg := mq.Config{NameServer: systest.NameServer(t), TopicPrefix: fmt.Sprintf("scan%08x_", rand.Uint32())}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := mq.EnsureTopics(ctx, cfg, brokerAddr); err != nil {
		t.Fatal(err)
	}
	producer, err := mq.NewProducer(cfg, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	store, err := reservation.New(reservation.Config{Addr: addr, FirstRetry: 10 * time.Millisecond}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	sku := reservation.SKU{ActivityID: systest.ActivityID(), SKUID: 20001}
	t.Cleanup(func() { // the keys would outlive the test by a week
		ctx := context.Background()
		raw := goredis.NewClient(&goredis.Options{Addr: addr})
		if keys, err := raw.Keys(ctx, seckill.KeysOf(sku.ActivityID, sku.SKUID).Prefix()+"*").Result(); err == nil && len(keys) > 0 {
			raw.Del(ctx, keys...)
		}
		raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", sku.ActivityID, sku.SKUID))
		raw.Close()
		store.Close()
	})
	const n = 200
	if err := store.Warm(t.Context(), reservation.Activity{ActivityID: sku.ActivityID, SKUID: sku.SKUID, Stock: n, Version: 1,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	ids := seckill.NewIDGenerator(time.Now, [32]byte{byte(rand.Uint32()), byte(rand.Uint32()), 7})
	for user := range int64(n) {
		id := ids.NewReservationID()
		want[seckill.MessageIDOf(id)] = true
		if _, err := store.Reserve(t.Context(), sku.ActivityID, sku.SKUID, []reservation.Candidate{{RequestID: fmt.Sprint("r", user), UserID: user + 1,
			PayloadHash: "p", ReservationID: id, MessageID: seckill.MessageIDOf(id)}}); err != nil {
			t.Fatal(err)
		}
	}
	sender := &confirmed{Producer: producer, lose: 1, sent: map[string]int{}}
	short := scanner.ConfigDefault
	short.Poll = 20 * time.Millisecond
	var scanners []*scanner.Scanner
	for range 3 {
		p := params(own{store, sku}, sender, nil)
		p.Config = short
		s, err := scanner.New(p)
		if err != nil {
			t.Fatal(err)
		}
		scanners = append(scanners, s)
	}
	stop := run(scanners...)
	defer stop()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, err := store.PendingCount(t.Context(), sku.ActivityID, sku.SKUID)
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d still pending", left)
		}
	}
	stop()
	again := 0
	for id, times := range sender.sent {
		if !want[id] {
			t.Errorf("%s is no reservation's message id", id)
		}
		if times > 1 {
			again++
		}
	}
	if len(sender.sent) != n || again == 0 || again > reservation.BatchMax {
		t.Errorf("%d of %d sent, %d of them again; want all, and only the batch whose confirmation was lost", len(sender.sent), n, again)
	}
}
