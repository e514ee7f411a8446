package app_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/seckill"
)

// proxy stands before a server that speaks RocketMQ's protocol. Frozen, the
// connections there are swallow everything, in both directions, and stay open;
// new ones work.
type proxy struct {
	addr     string
	rewrites [2][]byte // in what the server says
	epoch    atomic.Int64
}

func newProxy(t *testing.T, target string, rewrites [2]string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: ln.Addr().String(), rewrites: [2][]byte{[]byte(rewrites[0]), []byte(rewrites[1])}}
	var serving sync.WaitGroup
	var open sync.Map
	serving.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			open.Store(client, nil)
			open.Store(server, nil)
			epoch := p.epoch.Load()
			// The end of one is the end of the other.
			serving.Go(func() { defer server.Close(); p.pass(client, server, epoch, nil) })
			serving.Go(func() { defer client.Close(); p.pass(server, client, epoch, &p.rewrites) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		serving.Wait()
	})
	return p
}

// pass forwards frames until one side ends.
func (p *proxy) pass(from io.Reader, to io.Writer, epoch int64, rewrites *[2][]byte) {
	for {
		var length [4]byte
		if _, err := io.ReadFull(from, length[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		if rewrites != nil && len(rewrites[0]) > 0 {
			body = bytes.ReplaceAll(body, rewrites[0], rewrites[1])
		}
		if p.epoch.Load() != epoch {
			continue
		}
		if _, err := to.Write(append(length[:], body...)); err != nil {
			return
		}
	}
}

// freeze holds the connections there are.
func (p *proxy) freeze() { p.epoch.Add(1) }

// R7.4.5 R11.8: a consumer whose connection went silent, so that the library
// waits for an answer that never comes, is seen to stall while the broker has
// messages for it, and its client is started anew.
func TestAConsumerThatStallsIsStartedAnew(t *testing.T) {
	const users = 40
	w := setup(t, users, users)
	w.cfg.Consumer.Stall = 2 * time.Second
	front := newProxy(t, broker(t), [2]string{})
	if len(front.addr) != len(broker(t)) { // frames keep their length
		t.Fatalf("broker %s, proxy %s", broker(t), front.addr)
	}
	direct := w.cfg.MQ
	w.cfg.MQ.NameServer = newProxy(t, direct.NameServer, [2]string{broker(t), front.addr}).addr
	consumer := w.start(app.RoleConsumer)

	producer, err := mq.NewProducer(direct, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	ids := w.unsent(users)
	send := func(ids []string) {
		t.Helper()
		for _, id := range ids {
			r, found, err := w.redis.LookupReservation(t.Context(), w.sku.ActivityID, w.sku.SKUID, id)
			if err != nil || !found {
				t.Fatalf("%v, %v", found, err)
			}
			if err := producer.SendOrderCreates([]seckill.OrderCreateMessage{r.Message(time.Now())}); err != nil {
				t.Fatal(err)
			}
		}
	}
	orders := func(n float64) {
		t.Helper()
		eventually(t, fmt.Sprintf("%v orders", n), 60*time.Second, func() bool { return consumer.metric("order_created_total", "") >= n })
	}
	label := fmt.Sprintf("topic=%q", seckill.TopicOrderCreate)
	send(ids[:users/2])
	orders(users / 2)
	if n := consumer.metric("consumer_restarts_total", label); n != 0 {
		t.Errorf("%v restarts of a consumer that does its work", n)
	}
	front.freeze()
	send(ids[users/2:])
	orders(users)
	if n := consumer.metric("consumer_restarts_total", label); n < 1 {
		t.Errorf("%v restarts: the messages came another way", n)
	}
	consumer.drain()
}
