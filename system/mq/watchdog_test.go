package mq

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A client stalls when messages wait for it, none comes and no handler is
// busy, for long enough and without a break.
func TestTheWatchdogTellsAStallFromSilence(t *testing.T) {
	type look struct {
		delivered    int64
		busy, behind bool
		stuck        bool
	}
	for rule, looks := range map[string][]look{
		"nothing waits":                     {{}, {}, {}, {}, {}, {}},
		"messages wait":                     {{behind: true}, {behind: true}, {behind: true}, {behind: true, stuck: true}},
		"a handler waits an outage out":     {{behind: true}, {behind: true, busy: true}, {behind: true}, {behind: true}, {behind: true}, {behind: true, stuck: true}},
		"messages come":                     {{behind: true}, {behind: true}, {delivered: 1, behind: true}, {1, false, true, false}, {1, false, true, false}, {1, false, true, false}, {1, false, true, true}},
		"it caught up in between":           {{behind: true}, {behind: true}, {}, {behind: true}, {behind: true}, {behind: true}, {behind: true, stuck: true}},
		"all was consumed before a silence": {{delivered: 9}, {delivered: 9}, {delivered: 9}, {delivered: 9}, {delivered: 9}},
	} {
		dog := watchdog{stall: 3 * time.Second}
		now := time.Unix(0, 0)
		for i, l := range looks {
			if got := dog.stuck(now, l.delivered, l.busy, func() bool { return l.behind }); got != l.stuck {
				t.Errorf("%s: look %d: stuck is %v", rule, i+1, got)
			}
			now = now.Add(time.Second)
		}
	}
}

// Starting anew what does not help is done less and less often, until a
// message comes.
func TestRestartsThatBringNothingGrowRare(t *testing.T) {
	dog := watchdog{stall: 5 * time.Second}
	for _, want := range []time.Duration{10, 20, 40, 40, 40} {
		dog.restarted()
		if dog.stall != want*time.Second {
			t.Errorf("stall is %v, want %ds", dog.stall, want)
		}
	}
	dog.stuck(time.Unix(0, 0), 1, false, nil)
	if dog.stall != 5*time.Second {
		t.Errorf("after a message the stall is %v", dog.stall)
	}
}

// What waits in the queues of others is theirs. A client that the broker does
// not count among the group any more has nobody to leave it to.
func TestOnlyWhatWaitsForThisClientIsItsBusiness(t *testing.T) {
	waiting := map[Queue]int64{}
	var failure error
	c, err := NewConsumer(ConsumerConfig{Config: Config{NameServer: "127.0.0.1:9876"}, Topic: "t", Group: "g", Batch: 1, Workers: 1, Drain: time.Second,
		Stall: time.Second, Waiting: func(context.Context) (map[Queue]int64, error) { return waiting, failure }},
		func(context.Context, []Delivery) error { return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(c)
	allocate := s.share.allocate("t")
	var all []*primitive.MessageQueue
	for id := range 4 {
		all = append(all, &primitive.MessageQueue{Topic: "t", BrokerName: "b", QueueId: id})
	}
	if mine := allocate("g", "me", all, []string{"me", "other"}); len(mine) != 2 || mine[0].QueueId != 0 || mine[1].QueueId != 1 {
		t.Fatalf("given %v", mine)
	}
	behind := func(want bool, of string) {
		t.Helper()
		if got := s.behind(t.Context()); got != want {
			t.Errorf("%s: behind is %v", of, got)
		}
	}
	behind(false, "nothing")
	waiting[Queue{"b", 3}] = 7
	behind(false, "the other's")
	waiting[Queue{"b", 1}] = 1
	behind(true, "mine")
	failure = errors.New("no answer")
	behind(false, "unknown")
	failure = nil
	delete(waiting, Queue{"b", 1})
	allocate("g", "me", []*primitive.MessageQueue{{Topic: "%RETRY%g", BrokerName: "b"}}, []string{"me"})
	behind(false, "another topic's queues change nothing")
	allocate("g", "me", all, []string{"other"})
	behind(true, "the group does not count me")
	allocate("g", "zz", all[:1], []string{"me", "zz"})
	behind(false, "more clients than queues")
}

func TestAStallNeedsSomebodyWhoSaysWhatWaits(t *testing.T) {
	cfg := ConsumerConfig{Config: Config{NameServer: "127.0.0.1:9876"}, Topic: "t", Group: "g", Batch: 1, Workers: 1, Drain: time.Second, Stall: time.Second}
	if _, err := NewConsumer(cfg, func(context.Context, []Delivery) error { return nil }, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no error")
	}
}
