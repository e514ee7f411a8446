package app

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// still is a store and a producer that do nothing.
type still struct {
	Store
	Producer
}

func (still) Reserve(context.Context, int64, int64, []reservation.Candidate) (reservation.Batch, error) {
	return reservation.Batch{}, nil
}
func (still) Apply(context.Context, int64, int64, []seckill.Event) (reservation.Applied, error) {
	return reservation.Applied{}, nil
}
func (still) SendOrderCreates([]seckill.OrderCreateMessage) error { return nil }
func (still) SendEvents(context.Context, []seckill.Event) error   { return nil }

// R12.6: with tracing off and the usual log level, watching a reservation's
// way allocates nothing.
func TestNobodyPaysForWhatNobodyReads(t *testing.T) {
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	o := observer{log: slog.New(slog.NewJSONHandler(quiet, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	id := seckill.NewIDGenerator(time.Now, [32]byte{1}).NewReservationID()
	m := seckill.OrderCreateMessage{ReservationID: id, MessageID: seckill.MessageIDOf(id), ActivityID: 1, SKUID: 2, UserID: 3}
	answered := submit.Answered{ReservationID: id, Code: seckill.CodeQueued, Command: seckill.SubmitCommand{ActivityID: 1, SKUID: 2, UserID: 3, RequestID: "r"}}
	ends := []order.Decided{{Message: &m, Status: seckill.StatusOrderCreated, OrderID: "ord_1"}}
	decided := o.decided(seckill.GroupOrder)
	events := []seckill.Event{{EventType: seckill.EventOrderCreated, ReservationID: id, Status: seckill.StatusOrderCreated}}
	store, producer := observedStore{still{}, o, seckill.GroupProjector}, observedProducer{still{}, o}
	candidates, messages := []reservation.Candidate{{ReservationID: id}}, []seckill.OrderCreateMessage{m}
	for what, do := range map[string]func(){
		"begin":   func() { o.begin("", id) },
		"reserve": func() { _, _ = store.Reserve(t.Context(), 1, 2, candidates) },
		"send":    func() { _ = producer.SendOrderCreates(messages) },
		"answer":  func() { o.answered(answered) },
		"decide":  func() { decided(ends) },
		"publish": func() { _ = producer.SendEvents(t.Context(), events) },
		"apply":   func() { _, _ = store.Apply(t.Context(), 1, 2, events) },
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
