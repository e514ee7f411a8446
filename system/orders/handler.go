package orders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/openapi"
	"github.com/hotsku/hotsku/system/seckill"
)

// The paths, each followed by an id.
const (
	pathRequests     = "/v1/seckill/requests/"
	pathReservations = "/v1/seckill/reservations/"
	pathOrders       = "/v1/seckill/orders/"
	pathDocument     = "/openapi.yaml" // followed by nothing
)

// handler serves queries over HTTP.
type handler struct {
	ctx     context.Context
	service *Service
	codecs  sync.Pool // of *seckill.TokenCodec, which are for one user at a time
}

// Handler serves GET on the three paths, POST of an order's end, and the
// interface's description. keys verify the eligibility tokens; a token speaks
// for its user in its activity. Requests end with ctx.
func Handler(ctx context.Context, service *Service, keys ...seckill.TokenKey) (fasthttp.RequestHandler, error) {
	if _, err := seckill.NewTokenCodec(keys...); err != nil {
		return nil, fmt.Errorf("orders handler: %w", err)
	}
	h := &handler{ctx: ctx, service: service}
	h.codecs.New = func() any {
		codec, err := seckill.NewTokenCodec(keys...)
		if err != nil { // the same keys were good above
			panic(fmt.Sprintf("orders: %v", err))
		}
		return codec
	}
	return h.serve, nil
}

func (h *handler) serve(rc *fasthttp.RequestCtx) {
	if string(rc.Path()) == pathDocument && rc.IsGet() {
		rc.SetContentType("application/yaml")
		rc.SetBody(openapi.Document)
		return
	}
	a := h.answer(rc)
	if a.RetryAfterMS > 0 {
		rc.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.FormatInt((a.RetryAfterMS+999)/1000, 10))
	}
	if a.Code == seckill.CodeUnauthenticated {
		rc.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
	}
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	rc.SetContentType("application/json")
	rc.SetStatusCode(a.Code.HTTPStatus())
	rc.SetBody(a.AppendJSON(nil))
}

func (h *handler) answer(rc *fasthttp.RequestCtx) seckill.Answer {
	method, ask := h.route(string(rc.Path()))
	switch {
	case method == "":
		return seckill.Answer{Code: seckill.CodeNotFound, Reason: fmt.Sprintf("nothing is served at %.80s", rc.Path())}
	case string(rc.Method()) != method:
		rc.Response.Header.Set(fasthttp.HeaderAllow, method)
		return seckill.Answer{Code: seckill.CodeMethodNotAllowed, Reason: "only " + method + " is served here"}
	}
	return ask(rc)
}

// route is the method that a path takes, "" if there is no such path, and
// what answers it.
func (h *handler) route(path string) (method string, ask func(*fasthttp.RequestCtx) seckill.Answer) {
	if path == pathDocument {
		return fasthttp.MethodGet, nil // serve has answered it
	}
	if rest, ok := strings.CutPrefix(path, pathOrders); ok {
		switch id, what, sub := strings.Cut(rest, "/"); {
		case !sub:
			return fasthttp.MethodGet, func(rc *fasthttp.RequestCtx) seckill.Answer { return h.order(rc, id) }
		case what == "pay":
			return fasthttp.MethodPost, func(rc *fasthttp.RequestCtx) seckill.Answer { return h.end(rc, id, h.service.Pay) }
		case what == "cancel":
			return fasthttp.MethodPost, func(rc *fasthttp.RequestCtx) seckill.Answer { return h.end(rc, id, h.service.Cancel) }
		}
		return "", nil
	}
	if id, ok := cutID(path, pathRequests); ok {
		return fasthttp.MethodGet, func(rc *fasthttp.RequestCtx) seckill.Answer {
			return h.reservation(rc, seckill.ValidateRequestID(id), func(k sku, user int64) seckill.Answer {
				return h.service.ByRequest(h.ctx, k.activityID, k.skuID, user, id)
			})
		}
	}
	if id, ok := cutID(path, pathReservations); ok {
		return fasthttp.MethodGet, func(rc *fasthttp.RequestCtx) seckill.Answer {
			return h.reservation(rc, checkID("reservation_id", id, seckill.ReservationIDPrefix), func(k sku, user int64) seckill.Answer {
				return h.service.ByReservation(h.ctx, k.activityID, k.skuID, user, id)
			})
		}
	}
	return "", nil
}

// reservation checks the request, then the token, then asks.
func (h *handler) reservation(rc *fasthttp.RequestCtx, badID error, ask func(k sku, user int64) seckill.Answer) seckill.Answer {
	if badID != nil {
		return invalid(badID)
	}
	var k sku
	var err error
	if k.activityID, err = number(rc, "activity_id"); err != nil {
		return invalid(err)
	}
	if k.skuID, err = number(rc, "sku_id"); err != nil {
		return invalid(err)
	}
	who, err := h.authenticate(rc)
	if err != nil {
		return unauthenticated(err)
	}
	if who.ActivityID != k.activityID {
		return seckill.Answer{Code: seckill.CodeForbidden, Reason: "the token is for another activity"}
	}
	return ask(k, who.UserID)
}

// end pays or cancels an order.
func (h *handler) end(rc *fasthttp.RequestCtx, id string, call func(ctx context.Context, activityID, userID int64, orderID string) seckill.Answer) seckill.Answer {
	if err := checkID("order_id", id, seckill.OrderIDPrefix); err != nil {
		return invalid(err)
	}
	if body := bytes.TrimSpace(rc.PostBody()); len(body) > 0 && string(body) != "{}" {
		return invalid(&seckill.FieldError{Field: "body", Reason: "must be empty or {}: the path says it all"})
	}
	who, err := h.authenticate(rc)
	if err != nil {
		return unauthenticated(err)
	}
	return call(h.ctx, who.ActivityID, who.UserID, id)
}

func (h *handler) order(rc *fasthttp.RequestCtx, id string) seckill.Answer {
	if err := checkID("order_id", id, seckill.OrderIDPrefix); err != nil {
		return invalid(err)
	}
	who, err := h.authenticate(rc)
	if err != nil {
		return unauthenticated(err)
	}
	return h.service.ByOrder(h.ctx, who.ActivityID, who.UserID, id)
}

var errNoToken = errors.New("no eligibility token: want Authorization: Bearer TOKEN")

func (h *handler) authenticate(rc *fasthttp.RequestCtx) (seckill.EligibilityToken, error) {
	token, ok := bytes.CutPrefix(rc.Request.Header.Peek(fasthttp.HeaderAuthorization), []byte("Bearer "))
	if !ok {
		return seckill.EligibilityToken{}, errNoToken
	}
	codec := h.codecs.Get().(*seckill.TokenCodec)
	defer h.codecs.Put(codec)
	return codec.Verify(token, h.service.cfg.Now().Unix())
}

// cutID returns the one path segment after prefix.
func cutID(path, prefix string) (string, bool) {
	id, ok := strings.CutPrefix(path, prefix)
	return id, ok && !strings.Contains(id, "/")
}

// checkID says what is wrong with an id of the shape prefix and ULID.
func checkID(field, id, prefix string) error {
	ulid, ok := strings.CutPrefix(id, prefix)
	if !ok || !seckill.ValidReservationID(seckill.ReservationIDPrefix+ulid) {
		return &seckill.FieldError{Field: field, Reason: "must be " + prefix + " and 26 characters"}
	}
	return nil
}

// number reads a query parameter that must be there once.
func number(rc *fasthttp.RequestCtx, name string) (int64, error) {
	values := rc.QueryArgs().PeekMulti(name)
	if len(values) != 1 {
		return 0, &seckill.FieldError{Field: name, Reason: "must be given once"}
	}
	n, err := strconv.ParseInt(string(values[0]), 10, 64)
	if err != nil || n <= 0 {
		return 0, &seckill.FieldError{Field: name, Reason: "must be a positive integer"}
	}
	return n, nil
}

func invalid(err error) seckill.Answer {
	a := seckill.Answer{Code: seckill.CodeInvalidRequest, Reason: err.Error()}
	var field *seckill.FieldError
	if errors.As(err, &field) {
		a.Field, a.Reason = field.Field, field.Reason
	}
	return a
}

func unauthenticated(err error) seckill.Answer {
	return seckill.Answer{Code: seckill.CodeUnauthenticated, Reason: err.Error()}
}
