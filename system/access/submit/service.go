package submit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// Store is the Redis side, as the path needs it.
type Store interface {
	Reserve(ctx context.Context, activityID, skuID int64, c []reservation.Candidate) (reservation.Batch, error)
	MarkSent(ctx context.Context, activityID, skuID int64, reservationIDs []string) error
	NoteFailure(ctx context.Context, activityID, skuID int64, reservationIDs []string, code string) error
}

// Sender is the broker side. nil means confirmed; any error means unknown.
type Sender interface {
	SendOrderCreates(messages []seckill.OrderCreateMessage) error
}

// Breaker follows the sends and says whether requests that may reserve are let
// through (R7.11.3); see valve.Breaker. Allow is asked once a request.
type Breaker interface {
	Allow() bool
	Refusing() bool
	Sent(began time.Time, err error)
}

// IDs names reservations.
type IDs interface{ NewReservationID() string }

// Replier takes the one answer of a request. It must not block and must not
// keep the answer.
type Replier interface{ Reply(a *seckill.Answer) }

// Stats counts what passed each stage (10.1). Safe to read at any time.
type Stats struct {
	Submitted    atomic.Int64 // admitted to the queue
	Broken       atomic.Int64 // refused by the breaker: UNAVAILABLE
	Shut         atomic.Int64 // refused by the valves: UNAVAILABLE
	TurnedAway   atomic.Int64 // the queue was full: RATE_LIMITED at once
	Expired      atomic.Int64 // waited longer than QueueWait: RATE_LIMITED
	ReserveCalls atomic.Int64
	ReserveFails atomic.Int64 // calls whose outcome is unknown
	ReserveLate  atomic.Int64 // calls that outlasted ReserveTimeout
	Created      atomic.Int64
	Sends        atomic.Int64 // batches
	SendsUnknown atomic.Int64 // batches without a confirmation
	Unsent       atomic.Int64 // reservations left to the scanner while the breaker was open
	Late         atomic.Int64 // answered QUEUED_PENDING_MESSAGE for want of a confirmation in time
	Marked       atomic.Int64
	MarksDropped atomic.Int64
}

// Service is the path. Safe for concurrent use after Start.
type Service struct {
	cfg     Config
	store   Store
	sender  Sender
	breaker Breaker
	valves  func() string
	codeOf  func(error) string
	ids     IDs
	log     *slog.Logger
	observe Observers
	hit     func(seckill.FaultPoint)

	Stats Stats

	queue    chan *ticket
	waiting  chan *ticket // the same tickets, in the order of their QueueWait
	inFlight atomic.Int64
	outbound chan *ticket
	due      chan *ticket // created tickets in the order of their send deadline
	marks    chan *ticket
	failures chan failure // batches whose send was not confirmed

	stages [3]sync.WaitGroup // reservers and expiry; senders; markers, notes and deadline
	closed atomic.Bool
	submit sync.RWMutex // held for reading while submitting, for writing to close the queue
}

// ticket is one request on its way.
type ticket struct {
	cmd     seckill.SubmitCommand
	to      Replier
	arrived time.Time

	reservationID string
	trace         string // the reservation's
	message       seckill.OrderCreateMessage
	sendBy        time.Time
	phase         atomic.Int32
	answered      atomic.Bool
}

// Phases of a ticket: it leaves phaseWaiting once, for its batch or for want
// of one in time. Whoever moves it may answer it.
const (
	phaseWaiting = iota
	phaseDispatched
	phaseExpired
)

// accept gives the answer of a request that made a reservation, once.
func (s *Service) accept(t *ticket, code seckill.Code, status seckill.ReservationStatus) bool {
	first := t.reply(&seckill.Answer{Code: code, RequestID: t.cmd.RequestID, ReservationID: t.reservationID, Status: string(status)})
	if first {
		s.observe.Answered(Answered{Command: t.cmd, ReservationID: t.reservationID, Traceparent: t.trace, Code: code,
			Arrived: t.arrived, Parted: time.Now()})
	}
	return first
}

// reply gives the answer, once.
func (t *ticket) reply(a *seckill.Answer) bool {
	if t.answered.Swap(true) {
		return false
	}
	t.to.Reply(a)
	return true
}

// Observers are told what happened and how long it took; each may be nil.
type Observers struct {
	Reserve func(time.Duration) // one script call
	Send    func(time.Duration) // one batch, confirmed or not
	// Trace is the trace context that goes with a reservation about to be
	// made, from its request's. nil: the request's own.
	Trace func(traceparent, reservationID string) string
	// Answered is told of each request that made a reservation, once, after
	// its answer. It must not block.
	Answered func(Answered)
}

// Answered is a request that made a reservation.
type Answered struct {
	Command         seckill.SubmitCommand
	ReservationID   string
	Traceparent     string // as Observers.Trace gave it
	Code            seckill.Code
	Arrived, Parted time.Time
}

// Params of New. Store, Sender, IDs and Log are required.
type Params struct {
	Config  Config
	Store   Store
	Sender  Sender
	Breaker Breaker       // nil: none
	Valves  func() string // why no reservation may be made now, "" if it may; nil: it always may
	// ErrorCode names the cause of a send that was not confirmed, for
	// last_error_code; nil: all are SEND_UNKNOWN.
	ErrorCode func(error) string
	IDs       IDs
	Log       *slog.Logger
	Observe   Observers
	Hit       func(seckill.FaultPoint) // nil: none
}

// open is the Breaker of a service that has none.
type open struct{}

func (open) Allow() bool           { return true }
func (open) Refusing() bool        { return false }
func (open) Sent(time.Time, error) {}

// New returns a service; Start starts it.
func New(p Params) (*Service, error) {
	if err := p.Config.Validate(); err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	if p.Store == nil || p.Sender == nil || p.IDs == nil || p.Log == nil {
		return nil, errors.New("submit: store, sender, ids and log are required")
	}
	s := &Service{cfg: p.Config, store: p.Store, sender: p.Sender, ids: p.IDs, log: p.Log,
		breaker: p.Breaker, valves: p.Valves, codeOf: p.ErrorCode, observe: p.Observe, hit: p.Hit, failures: make(chan failure, failuresMax),
		queue: make(chan *ticket, p.Config.InFlight), waiting: make(chan *ticket, waitingMax), outbound: make(chan *ticket, outboundMax),
		due: make(chan *ticket, outboundMax), marks: make(chan *ticket, outboundMax)}
	if s.breaker == nil {
		s.breaker = open{}
	}
	if s.valves == nil {
		s.valves = func() string { return "" }
	}
	if s.codeOf == nil {
		s.codeOf = func(error) string { return "SEND_UNKNOWN" }
	}
	if s.observe.Reserve == nil {
		s.observe.Reserve = func(time.Duration) {}
	}
	if s.observe.Send == nil {
		s.observe.Send = func(time.Duration) {}
	}
	if s.observe.Trace == nil {
		s.observe.Trace = func(traceparent, _ string) string { return traceparent }
	}
	if s.observe.Answered == nil {
		s.observe.Answered = func(Answered) {}
	}
	if s.hit == nil {
		s.hit = func(seckill.FaultPoint) {}
	}
	return s, nil
}

// waitingMax bounds the tickets whose QueueWait is watched. One that does not
// fit is looked at by its reserver only.
const waitingMax = 1 << 16

// outboundMax bounds created reservations on their way to the broker; what
// does not fit is the scanner's.
const outboundMax = 8192

// Start starts the stages. Stop them with Stop.
func (s *Service) Start() {
	start := func(stage, n int, run func()) {
		for range n {
			s.stages[stage].Add(1)
			go func() { defer s.stages[stage].Done(); run() }()
		}
	}
	start(0, s.cfg.Reservers, s.reserveLoop)
	start(0, 1, s.expireLoop)
	start(1, s.cfg.Senders, s.sendLoop)
	start(2, s.cfg.Markers, s.markLoop)
	start(2, 1, s.noteLoop)
	start(2, 1, s.deadlineLoop)
}

// Stop refuses new requests, and lets those inside end: each stage is bounded
// by its timeouts. It may be called once.
func (s *Service) Stop() {
	s.submit.Lock()
	s.closed.Store(true)
	close(s.queue)
	close(s.waiting)
	s.submit.Unlock()
	s.stages[0].Wait()
	close(s.outbound)
	s.stages[1].Wait()
	close(s.due)
	close(s.marks)
	close(s.failures)
	s.stages[2].Wait()
}

// TryAcquire reserves a place for one Submit, which must follow. False means
// that too many are on their way: answer RATE_LIMITED, nothing was done.
func (s *Service) TryAcquire() bool {
	if s.inFlight.Add(1) > int64(s.cfg.InFlight) {
		s.inFlight.Add(-1)
		s.Stats.TurnedAway.Add(1)
		return false
	}
	return true
}

// Submit takes a valid command of an authenticated user, after TryAcquire.
// to gets exactly one answer.
func (s *Service) Submit(cmd seckill.SubmitCommand, to Replier) {
	s.submit.RLock()
	defer s.submit.RUnlock()
	if s.closed.Load() {
		s.inFlight.Add(-1)
		to.Reply(&seckill.Answer{Code: seckill.CodeUnavailable, RequestID: cmd.RequestID, Reason: seckill.ReasonDraining, RetryAfterMS: RetryAfterMS})
		return
	}
	s.Stats.Submitted.Add(1)
	t := &ticket{cmd: cmd, to: to, arrived: time.Now()}
	s.queue <- t // has room: at most InFlight are in it
	select {
	case s.waiting <- t:
	default:
	}
}

// RetryAfterMS is when a request that was not judged may be repeated.
const RetryAfterMS = 1000

// Refuses is the reason why nothing may be reserved now, "" if it may. It is
// asked once a request, before TryAcquire: what the breaker lets through is
// counted. What was reserved before goes its way.
func (s *Service) Refuses() string {
	if s.closed.Load() {
		return seckill.ReasonDraining
	}
	if reason := s.valves(); reason != "" {
		s.Stats.Shut.Add(1)
		return reason
	}
	if !s.breaker.Allow() {
		s.Stats.Broken.Add(1)
		return seckill.ReasonBrokerBreaker
	}
	return ""
}

// RateLimited is the answer of a request that was not judged.
func RateLimited(requestID string) *seckill.Answer {
	return &seckill.Answer{Code: seckill.CodeRateLimited, RequestID: requestID, RetryAfterMS: RetryAfterMS}
}
