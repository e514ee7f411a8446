package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/stack/remoting"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
	"github.com/hotsku/hotsku/verify/snapshot"
)

// What of the broker's messages comes again.
const (
	AgainCreates       = "creates"       // create messages
	AgainCompensations = "compensations" // events that ended a reservation
	AgainBackwards     = "backwards"     // all events, the latest first
)

// Again sends messages that the broker had already, Times times more, each in
// a queue that the seed says: copies overtake and are overtaken. It happens
// when the seed says, From to Until after the load began.
type Again struct {
	What        string
	Times       int
	From, Until time.Duration
}

func (a Again) name() string { return "again@" + a.What }

// Validate wants messages there are.
func (a Again) Validate() error {
	switch {
	case !slices.Contains([]string{AgainCreates, AgainCompensations, AgainBackwards}, a.What):
		return fmt.Errorf("there are no messages %q", a.What)
	case a.Times < 1:
		return fmt.Errorf("again %d times: must be once at least", a.Times)
	}
	return checkSpan(a.From, a.Until)
}

func (a Again) fits(s *Scenario) error {
	if a.What == AgainCompensations && s.processes("orders") == 0 {
		return errors.New("without an orders process nobody cancels, and nothing is compensated")
	}
	return s.lastsUntil(a.Until)
}

// againMax bounds how many messages one fault sends again: they go one by one.
const againMax = 500

func (a Again) build(at site) (chaos.Fault, error) {
	server, err := at.server(stack.BrokerName)
	if err != nil {
		return nil, err
	}
	by, felt, topic := "consumer", "inbox_conflict_total", seckill.TopicOrderCreate
	if a.What != AgainCreates {
		by, felt, topic = "outbox", "projector_repeated_total", seckill.TopicEvent
	}
	return &chaos.Deed{Called: a.name(), On: topic, Moment: at.moment(a.From, a.Until), Check: server.Answers,
		Felt: counter(felt, at.members(by)),
		Do: func(ctx context.Context) (map[string]int64, string, error) {
			letters, err := a.read(ctx, at)
			if err != nil {
				return nil, "", err
			}
			if a.What != AgainBackwards {
				at.rng.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
			}
			letters = letters[:min(len(letters), againMax)]
			copies, err := post(ctx, at.direct.BrokerDirect, topic, letters, a.Times, at.rng)
			return map[string]int64{"copies": copies}, fmt.Sprintf("%d messages, %d times more", len(letters), a.Times), err
		}}, nil
}

// letter is a message as its sender sees it.
type letter struct {
	key  string
	body []byte
}

// read takes what is sent again from where it is kept.
func (a Again) read(ctx context.Context, at site) ([]letter, error) {
	if a.What == AgainCreates {
		return creates(ctx, at)
	}
	file := map[string]string{AgainCompensations: "sql/compensations_read.sql", AgainBackwards: "sql/events_backwards.sql"}[a.What]
	query, err := statements.ReadFile(file)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, at.direct.Postgres)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, string(query), activityID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l letter, err error) {
		var body string
		err = row.Scan(&l.key, &body)
		l.body = []byte(body)
		return l, err
	})
}

func creates(ctx context.Context, at site) (letters []letter, err error) {
	stores, err := snapshot.Open(snapshot.Config{Redis: at.direct.Redis, Postgres: at.direct.Postgres, NameServer: at.direct.NameServer, Activities: at.plan.Activities})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	err = stores.Creates(ctx, func(m rundir.Message) error {
		if len(m.Body) > 0 {
			letters = append(letters, letter{m.Keys, m.Body})
		}
		return nil
	})
	return letters, err
}

// post sends letters to queues drawn one by one, all of them, times times.
func post(ctx context.Context, broker, topic string, letters []letter, times int, rng *rand.Rand) (sent int64, err error) {
	conn, err := remoting.Dial(ctx, broker)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	for range times {
		for _, l := range letters {
			if err := conn.Send(ctx, remoting.Message{Topic: topic, Queue: rng.IntN(topicQueues), Keys: l.key, Body: l.body}); err != nil {
				return sent, err
			}
			sent++
		}
	}
	return sent, nil
}

// topicQueues is how many queues each topic has.
const topicQueues = 8
