package wirings

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

// orderSuccessOnReserve calls a reservation an order: whoever asks is told so
// as soon as Redis holds one.
func orderSuccessOnReserve(w *app.Wiring, fire Fire) {
	w.Store = func(s *reservation.Store) app.Store { return &hopefulStore{s, fire} }
}

type hopefulStore struct {
	app.Store
	fire Fire
}

func (s *hopefulStore) LookupRequest(ctx context.Context, activityID, skuID int64, requestID string) (reservation.Reservation, bool, error) {
	r, found, err := s.Store.LookupRequest(ctx, activityID, skuID, requestID)
	return s.hope(r, found), found, err
}

func (s *hopefulStore) LookupReservation(ctx context.Context, activityID, skuID int64, reservationID string) (reservation.Reservation, bool, error) {
	r, found, err := s.Store.LookupReservation(ctx, activityID, skuID, reservationID)
	return s.hope(r, found), found, err
}

func (s *hopefulStore) hope(r reservation.Reservation, found bool) reservation.Reservation {
	if found && (r.Status == seckill.StatusPendingMessage || r.Status == seckill.StatusMessageSent) {
		r.Status = seckill.StatusOrderCreated
		r.OrderID = seckill.OrderIDPrefix + strings.TrimPrefix(r.ReservationID, seckill.ReservationIDPrefix)
		s.fire(r.ActivityID, "called reservation "+r.ReservationID+" an order")
	}
	return r
}

// requeryMiss takes a request without a result for one that never was, and
// invites to buy again.
func requeryMiss(w *app.Wiring, fire Fire) {
	w.Queries = func(h fasthttp.RequestHandler) fasthttp.RequestHandler {
		return func(rc *fasthttp.RequestCtx) {
			h(rc)
			a, err := seckill.ParseAnswer(rc.Response.Body())
			if err != nil || a.Code != seckill.CodeProcessing || a.RequestID == "" {
				return
			}
			a.Code = seckill.CodeNotAccepted
			rc.SetStatusCode(a.Code.HTTPStatus())
			rc.SetBody(a.AppendJSON(nil))
			fire(int64(rc.QueryArgs().GetUintOrZero("activity_id")), "invited to buy again what is under way")
		}
	}
}
