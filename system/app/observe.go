package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/telemetry"
)

// observer writes the key lines of specification 12.6 and the spans of a
// reservation's life, at the ports where it passes. What every reservation
// goes through is a line at debug, what ends one otherwise than well at info,
// what a person must see at warn.
type observer struct {
	log    *slog.Logger
	tracer *telemetry.Tracer
}

// Spans of a reservation's life.
const (
	spanSubmit  = "seckill.submit"
	spanReserve = "redis.reserve"
	spanSend    = "rocketmq.send"
	spanOrder   = "order.transaction"
	spanPublish = "outbox.publish"
	spanApply   = "projector.apply"
)

// writes says whether lines of a level are written. Where nobody listens,
// nothing may be made for a line.
func (o observer) writes(level slog.Level) bool { return o.log.Enabled(context.Background(), level) }

// deaf says that nothing at a level is told to anybody.
func (o observer) deaf(level slog.Level) bool { return o.tracer == nil && !o.writes(level) }

func (o observer) line(level slog.Level, text string, s telemetry.Subject) {
	if o.writes(level) {
		o.log.LogAttrs(context.Background(), level, text, s.Attrs()...)
	}
}

func (o observer) span(of seckill.Traceparent, name, reservationID, result string, began, ended time.Time) {
	if o.tracer == nil || !of.Sampled() {
		return
	}
	o.tracer.Record(telemetry.Span{Of: of, Name: name, Began: began, Ended: ended, Attributes: spanAttributes(reservationID, result)})
}

func spanAttributes(reservationID, result string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("seckill.reservation_id", reservationID), attribute.String("seckill.result_code", result)}
}

// begin is submit's Trace.
func (o observer) begin(traceparent, reservationID string) string {
	return string(o.tracer.Begin(seckill.Traceparent(traceparent), reservationID))
}

// answered is submit's Answered.
func (o observer) answered(a submit.Answered) {
	if o.deaf(slog.LevelDebug) {
		return
	}
	trace := seckill.Traceparent(a.Traceparent)
	o.line(slog.LevelDebug, "reservation answered", telemetry.Subject{Trace: trace, RequestID: a.Command.RequestID, ReservationID: a.ReservationID,
		MessageID: seckill.MessageIDOf(a.ReservationID), ActivityID: a.Command.ActivityID, SKUID: a.Command.SKUID, UserID: a.Command.UserID,
		ResultCode: a.Code.String()})
	if o.tracer != nil && trace.Sampled() {
		o.tracer.Record(telemetry.Span{Of: trace, Root: true, Parent: seckill.Traceparent(a.Command.Traceparent), Name: spanSubmit,
			Began: a.Arrived, Ended: a.Parted, Attributes: spanAttributes(a.ReservationID, a.Code.String())})
	}
}

// decided is the order processor's Decided.
func (o observer) decided(group string) func([]order.Decided) {
	return func(all []order.Decided) {
		for _, d := range all {
			m := d.Message
			level := slog.LevelInfo
			if d.Status == seckill.StatusOrderCreated {
				level = slog.LevelDebug
			}
			if o.deaf(level) {
				continue
			}
			o.line(level, "reservation decided", telemetry.Subject{Trace: seckill.Traceparent(m.Traceparent), RequestID: m.RequestID,
				ReservationID: m.ReservationID, MessageID: m.MessageID, ActivityID: m.ActivityID, SKUID: m.SKUID, UserID: m.UserID,
				OrderID: d.OrderID, TokenID: d.TokenID, ConsumerGroup: group, RetryCount: int64(m.RetryCount), ResultCode: string(d.Status)})
			o.span(seckill.Traceparent(m.Traceparent), spanOrder, m.ReservationID, string(d.Status), d.Began, d.Ended)
		}
	}
}

// observedStore tells what passes between a role and Redis.
type observedStore struct {
	Store
	o     observer
	group string // whose events the role applies; "": it applies what a query found
}

func (s observedStore) Reserve(ctx context.Context, activityID, skuID int64, c []reservation.Candidate) (reservation.Batch, error) {
	if s.o.tracer == nil {
		return s.Store.Reserve(ctx, activityID, skuID, c)
	}
	began := time.Now()
	b, err := s.Store.Reserve(ctx, activityID, skuID, c)
	if err != nil {
		return b, err
	}
	ended := time.Now()
	for i := range c {
		if b.Outcomes[i].Verdict == reservation.VerdictCreated {
			s.o.span(seckill.Traceparent(c[i].Traceparent), spanReserve, c[i].ReservationID, "", began, ended)
		}
	}
	return b, nil
}

func (s observedStore) SetAside(ctx context.Context, activityID, skuID int64, reservationIDs []string) error {
	err := s.Store.SetAside(ctx, activityID, skuID, reservationIDs)
	text := "reservation shown as set aside"
	if err != nil {
		text = "reservation set aside, but perhaps not shown so"
	}
	for _, id := range reservationIDs {
		s.o.line(slog.LevelWarn, text, telemetry.Subject{ReservationID: id, MessageID: seckill.MessageIDOf(id),
			ActivityID: activityID, SKUID: skuID, ResultCode: string(seckill.StatusSetAside), ErrorClass: redisClass(err)})
	}
	return err
}

func (s observedStore) Apply(ctx context.Context, activityID, skuID int64, events []seckill.Event) (reservation.Applied, error) {
	began := time.Now()
	applied, err := s.Store.Apply(ctx, activityID, skuID, events)
	s.o.events("event applied", s.group, spanApply, events, began, redisClass(err))
	return applied, err
}

// observedProducer tells what passes between a role and the broker.
type observedProducer struct {
	Producer
	o observer
}

func (p observedProducer) SendOrderCreates(messages []seckill.OrderCreateMessage) error {
	began := time.Now()
	err := p.Producer.SendOrderCreates(messages)
	ended := time.Now()
	level, text := slog.LevelDebug, "message sent"
	if err != nil {
		level, text = slog.LevelInfo, "message sent without a confirmation"
	}
	if p.o.deaf(level) {
		return err
	}
	class := mqClass(err)
	for i := range messages {
		m := &messages[i]
		p.o.line(level, text, telemetry.Subject{Trace: seckill.Traceparent(m.Traceparent), RequestID: m.RequestID, ReservationID: m.ReservationID,
			MessageID: m.MessageID, ActivityID: m.ActivityID, SKUID: m.SKUID, UserID: m.UserID, RetryCount: int64(m.RetryCount), ErrorClass: class})
		p.o.span(seckill.Traceparent(m.Traceparent), spanSend, m.ReservationID, class, began, ended)
	}
	return err
}

func (p observedProducer) SendEvents(ctx context.Context, events []seckill.Event) error {
	began := time.Now()
	err := p.Producer.SendEvents(ctx, events)
	p.o.events("event published", "", spanPublish, events, began, mqClass(err))
	return err
}

// events tells of events that were published or applied, or, with a class,
// perhaps were not.
func (o observer) events(text, group, span string, events []seckill.Event, began time.Time, class string) {
	ended := time.Now()
	if class != "" {
		text += " without a confirmation"
	}
	for i := range events {
		e := &events[i]
		level := slog.LevelDebug
		if class != "" || e.EventType == seckill.EventCompensate {
			level = slog.LevelInfo
		}
		if o.deaf(level) {
			continue
		}
		o.line(level, text, telemetry.Subject{Trace: seckill.Traceparent(e.Traceparent), ReservationID: e.ReservationID,
			MessageID: seckill.MessageIDOf(e.ReservationID), ActivityID: e.ActivityID, SKUID: e.SKUID, UserID: e.UserID, OrderID: e.OrderID,
			ConsumerGroup: group, ResultCode: string(e.Status), ErrorClass: class})
		o.span(seckill.Traceparent(e.Traceparent), span, e.ReservationID, string(e.Status), began, ended)
	}
}

// mqClass names what went wrong at the broker.
func mqClass(err error) string {
	if err == nil { // usual, and free
		return ""
	}
	return mq.ErrorCode(err)
}

// redisClass names what went wrong at Redis in a few words that do not vary.
func redisClass(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, reservation.ErrRejected):
		return "REDIS_REJECTED"
	}
	return "REDIS_UNAVAILABLE"
}
