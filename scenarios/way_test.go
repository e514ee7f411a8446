package scenarios

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/chaos/frame"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
)

func losing() LoseReply {
	return LoseReply{Reply: ReplyReserve, Of: "access", Until: time.Second, Among: 10, Times: 1, By: "access", Felt: "unknown_total"}
}

func blocking() WayBlocked {
	return WayBlocked{Way: Way{Store: stack.BrokerName}, Trouble: chaos.Trouble{Refuse: true}, Until: time.Second, By: "access", Felt: "unknown_total"}
}

func TestAFaultOnAWaySaysWhatItNeeds(t *testing.T) {
	lose := func(change func(*LoseReply)) Kind { l := losing(); change(&l); return l }
	block := func(change func(*WayBlocked)) Kind { b := blocking(); change(&b); return b }
	for _, c := range []struct {
		kind Kind
		says string // empty: nothing is wrong
	}{
		{losing(), ""},
		{blocking(), ""},
		{lose(func(l *LoseReply) { l.Reply = "PONG" }), `no reply "PONG" is known`},
		{lose(func(l *LoseReply) { l.Among = 0 }), "one of 0"},
		{lose(func(l *LoseReply) { l.Times = 0 }), "0 replies lost"},
		{lose(func(l *LoseReply) { l.Felt = "" }), "by which metric"},
		{lose(func(l *LoseReply) { l.By = "consumers" }), `no process of kind "consumers" to miss it`},
		{lose(func(l *LoseReply) { l.Of = "orders" }), `no process of kind "orders" to have a way of its own`},
		{lose(func(l *LoseReply) { l.Reply = ReplySend }), "the broker tells all its clients one address"},
		{lose(func(l *LoseReply) { l.Until = 0 }), "from 0s to 0s"},
		{lose(func(l *LoseReply) { l.Until = time.Hour }), "up to 1h0m0s into a load"},
		{block(func(b *WayBlocked) { b.Way.Store = "namesrv" }), `no way leads to "namesrv"`},
		{block(func(b *WayBlocked) { b.Trouble = chaos.Trouble{} }), "0 kinds"},
		{block(func(b *WayBlocked) { b.Times = 2 }), "trouble 2 times for 0s"},
		{block(func(b *WayBlocked) { b.By = "" }), "by which metric"},
		{block(func(b *WayBlocked) { b.By = "orders" }), `no process of kind "orders" to feel it`},
		{block(func(b *WayBlocked) { b.From = b.Until }), "from 1s to 1s"},
		{block(func(b *WayBlocked) { b.Until = time.Hour }), "up to 1h0m0s into a load"},
	} {
		s := small()
		s.Faults[0].Kind = c.kind
		if err := s.Validate(); c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: error is %v, want %q", c.kind, err, c.says)
		}
		if _, err := c.kind.build(site{fleet: members(t, s.Fleet)}); err == nil || !strings.Contains(err.Error(), "no proxy stands on the way") {
			t.Errorf("%+v was built on no way: %v", c.kind, err)
		}
	}
}

// Proxies stand before there is any traffic, one a way, and each kind of
// process dials its own; the others, and the verifier, the servers.
func TestEachKindDialsItsOwnWay(t *testing.T) {
	s := small()
	commit, send := losing(), losing()
	commit.Reply, commit.Of = ReplyCommit, "consumer"
	send.Reply, send.Of = ReplySend, ""
	for _, k := range []Kind{losing(), commit, send, blocking(), WayBlocked{Way: Way{Store: stack.RedisName}}} {
		s.Faults = append(s.Faults, Fault{Kind: k})
	}
	want := []Way{{"redis", "access"}, {"postgres", "consumer"}, {"broker", ""}, {"redis", ""}}
	if diff := cmp.Diff(want, s.ways()); diff != "" || !s.brokerBehindProxy() {
		t.Fatalf("ways (-want +got):\n%s", diff)
	}
	real := stack.Addresses{Redis: "127.0.0.1:1", Postgres: "postgres://u:p@127.0.0.1:2/d?sslmode=disable", NameServer: "127.0.0.1:3",
		Broker: freeAddr(t), BrokerDirect: "127.0.0.2:4"}
	r := &runner{s: &s, dials: real}
	if err := r.openWays(real, func(Way, string) {}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.closeWays(); err != nil {
			t.Error(err)
		}
	}()
	everybody, access, consumer := real, real, real
	everybody.Redis = r.ways[want[3]].Addr()
	access.Redis = r.ways[want[0]].Addr()
	consumer.Redis, consumer.Postgres = everybody.Redis, "postgres://u:p@"+r.ways[want[1]].Addr()+"/d?sslmode=disable"
	for kind, want := range map[string]stack.Addresses{"scanner": everybody, "access": access, "consumer": consumer} {
		if diff := cmp.Diff(want, r.dialledBy(kind)); diff != "" {
			t.Errorf("%s dials (-want +got):\n%s", kind, diff)
		}
	}
	if r.ways[want[2]].Addr() != real.Broker {
		t.Errorf("the broker's proxy listens on %s, clients dial %s", r.ways[want[2]].Addr(), real.Broker)
	}
	if plain := small(); (&runner{}).closeWays() != nil || plain.brokerBehindProxy() {
		t.Error("a scenario without ways has proxies")
	}
}

// freeAddr is one nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// The environment is at fault, nothing of the product: the error names the
// proxy and the address.
func TestAProxyThatCannotListenIsNamed(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, _, err = openWay(Way{Store: stack.BrokerName}, stack.Addresses{Broker: ln.Addr().String(), BrokerDirect: "127.0.0.2:4"}, 1)
	if !errors.Is(err, proxy.ErrListen) || !strings.Contains(err.Error(), "proxy broker: cannot listen on "+ln.Addr().String()) {
		t.Errorf("error is %v", err)
	}
}

func TestRepliesAreOfTheirKind(t *testing.T) {
	k := seckill.KeysOf(activityID, skuID)
	reserve := []string{"sha", "8", k.Meta(), k.Stock(), k.SoldOut(), k.Pending(), k.Log(), k.User(7), k.Request("r"), k.Reservation("i")}
	other := func(at int, word string) []string {
		words := append([]string{}, reserve...)
		words[at] = word
		return words
	}
	warm := seckill.KeysOf(warmUpActivityID, skuID)
	for _, c := range []struct {
		kind  ReplyKind
		reply frame.Reply
		is    bool
	}{
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: reserve, Answered: []string{"1", "2", "1", "CREATED"}}, true},
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: reserve, Answered: []string{"1", "2", "1", "SOLD_OUT"}}, false},
		{ReplyReserve, frame.Reply{Request: "EVAL", Asked: reserve, Answered: []string{"CREATED"}}, false},
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: other(1, "7"), Answered: []string{"CREATED"}}, false},
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: other(1, "x"), Answered: []string{"CREATED"}}, false},
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: other(2, warm.Meta()), Answered: []string{"CREATED"}}, false},
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: other(7, k.Reservation("i")), Answered: []string{"CREATED"}}, false},
		{ReplyReserve, frame.Reply{Request: "EVALSHA", Asked: reserve[:7], Answered: []string{"CREATED"}}, false},
		{ReplySend, frame.Reply{Request: frame.SendMessage, Asked: []string{seckill.TopicOrderCreate}, Answered: []string{"0"}}, true},
		{ReplySend, frame.Reply{Request: frame.SendMessageV2, Asked: []string{seckill.TopicOrderCreate}, Answered: []string{"0"}}, true},
		{ReplySend, frame.Reply{Request: frame.SendBatchMessage, Asked: []string{seckill.TopicOrderCreate}, Answered: []string{"0"}}, true},
		{ReplySend, frame.Reply{Request: frame.SendBatchMessage, Asked: []string{seckill.TopicEvent}, Answered: []string{"0"}}, false},
		{ReplySend, frame.Reply{Request: frame.SendBatchMessage, Asked: []string{seckill.TopicOrderCreate}, Answered: []string{"2"}}, false},
		{ReplySend, frame.Reply{Request: "34", Answered: []string{"0"}}, false},
		{ReplyCommit, frame.Reply{Request: "COMMIT"}, true},
		{ReplyCommit, frame.Reply{Request: "ROLLBACK"}, false},
	} {
		if got := c.kind.match(&c.reply); got != c.is {
			t.Errorf("%s: %+v: %v", c.kind, c.reply, got)
		}
	}
}
