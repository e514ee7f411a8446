package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/chaos/frame"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
)

// ReplyKind is a reply whose loss leaves somebody in doubt.
type ReplyKind string

// The kinds.
const (
	ReplyReserve ReplyKind = "EVALSHA"     // of the reserve script, to one that reserved
	ReplySend    ReplyKind = "SendMessage" // of the broker, to create messages that it stored
	ReplyCommit  ReplyKind = "COMMIT"      // of PostgreSQL
)

// store is whose reply it is.
func (k ReplyKind) store() string {
	return map[ReplyKind]string{ReplyReserve: stack.RedisName, ReplySend: stack.BrokerName, ReplyCommit: stack.PostgresName}[k]
}

// LoseReply loses replies to processes of the kind Of, when the seed says,
// From to Until after the load began, and from which on the seed says.
type LoseReply struct {
	Reply       ReplyKind
	Of          string // empty: to anybody
	From, Until time.Duration
	// Among is how many replies the first that is lost is drawn from; Times
	// are lost, each Among after the other.
	Among, Times int64
	// Felt is the metric by which processes of the kind By tell that they do
	// not know.
	By, Felt string
}

func (l LoseReply) name() string { return chaos.LoseReplyName(string(l.Reply)) }

func (l LoseReply) way() Way { return Way{Store: l.Reply.store(), Of: l.Of} }

// Validate wants a reply there is, and a way to see that it is missed.
func (l LoseReply) Validate() error {
	switch {
	case l.Reply.store() == "":
		return fmt.Errorf("no reply %q is known", l.Reply)
	case l.Among < 1 || l.Times < 1:
		return fmt.Errorf("%d replies lost, one of %d: must be positive", l.Times, l.Among)
	case l.Felt == "" || l.By == "":
		return errors.New("a reply is lost: say by which metric of whom it is missed")
	}
	return errors.Join(l.way().Validate(), checkSpan(l.From, l.Until))
}

func (l LoseReply) fits(s *Scenario) error {
	if s.processes(l.By) == 0 {
		return fmt.Errorf("the fleet has no process of kind %q to miss it", l.By)
	}
	return errors.Join(l.way().fits(s), s.lastsUntil(l.Until))
}

func (l LoseReply) build(at site) (chaos.Fault, error) {
	p, err := at.way(l.way())
	if err != nil {
		return nil, err
	}
	return &chaos.LoseReply{Way: p, What: string(l.Reply), Moment: at.moment(l.From, l.Until), Felt: counter(l.Felt, at.members(l.By)),
		Loss: proxy.Loss{Match: l.Reply.match, From: 1 + at.rng.Int64N(l.Among), Every: l.Among, Times: l.Times}}, nil
}

// match says whether a reply is of the kind.
func (k ReplyKind) match(r *frame.Reply) bool {
	switch k {
	case ReplyReserve:
		return isReserve(r.Request, r.Asked) && slices.Contains(r.Answered, "CREATED")
	case ReplySend:
		return slices.Contains([]string{frame.SendMessage, frame.SendMessageV2, frame.SendBatchMessage}, r.Request) &&
			slices.Equal(r.Asked, []string{seckill.TopicOrderCreate}) && slices.Equal(r.Answered, []string{"0"})
	}
	return r.Request == string(k)
}

// isReserve knows the reserve script by the keys it takes, the judged sale's:
// five of the SKU, then of each request a user's, a request's and a
// reservation's.
func isReserve(command string, args []string) bool {
	keys := seckill.KeysOf(activityID, skuID)
	if command != "EVALSHA" || len(args) < 8 {
		return false
	}
	n, err := strconv.Atoi(args[1])
	user := keys.User(0)
	return err == nil && n >= 8 && (n-5)%3 == 0 && slices.Equal(args[2:7], []string{keys.Meta(), keys.Stock(), keys.SoldOut(), keys.Pending(), keys.Log()}) &&
		len(args[7]) >= len(user) && args[7][:len(user)-1] == user[:len(user)-1]
}
