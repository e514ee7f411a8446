package orders_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/hotsku/hotsku/system/orders"
	"github.com/hotsku/hotsku/system/seckill"
)

func TestHandlerAnswersByTheContract(t *testing.T) { // R9.1.1, R9.1.2
	f := setup(t, 2)
	r := f.reserve(7, "r1")
	f.consume(r)
	old := seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef")}
	key := seckill.TokenKey{ID: "k2", Secret: []byte("fedcba9876543210")}
	handle, err := orders.Handler(t.Context(), f.service(), key, old)
	f.must(err)
	sign := func(k seckill.TokenKey, user, activity int64, expires time.Time) string {
		codec, err := seckill.NewTokenCodec(k)
		f.must(err)
		return "Bearer " + string(codec.AppendSigned(nil, user, activity, expires.Unix()))
	}
	soon := time.Now().Add(time.Hour)
	mine := sign(key, 7, f.activityID, soon)
	query := fmt.Sprintf("?activity_id=%d&sku_id=%d", f.activityID, f.skuID)
	get := func(method, uri, auth string) (seckill.Answer, *fasthttp.RequestCtx) {
		var rc fasthttp.RequestCtx
		rc.Request.Header.SetMethod(method)
		rc.Request.SetRequestURI(uri)
		if auth != "" {
			rc.Request.Header.Set("Authorization", auth)
		}
		handle(&rc)
		a, err := seckill.ParseAnswer(rc.Response.Body())
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		if rc.Response.StatusCode() != a.Code.HTTPStatus() {
			t.Errorf("%s: status %d for %s", uri, rc.Response.StatusCode(), a.Code)
		}
		return a, &rc
	}
	order, _ := get("GET", "/v1/seckill/requests/r1"+query, mine)
	if order.Code != seckill.CodeFound || order.OrderID == "" {
		t.Fatalf("the accepted request: %+v", order)
	}
	unknownID := "ord_" + strings.Repeat("0", 26)

	for name, test := range map[string]struct {
		method, uri, auth string
		code              seckill.Code
		field             string
	}{
		"request":              {"GET", "/v1/seckill/requests/r1" + query, mine, seckill.CodeFound, ""},
		"old key":              {"GET", "/v1/seckill/requests/r1" + query, sign(old, 7, f.activityID, soon), seckill.CodeFound, ""},
		"reservation":          {"GET", "/v1/seckill/reservations/" + r.ReservationID + query, mine, seckill.CodeFound, ""},
		"order":                {"GET", "/v1/seckill/orders/" + order.OrderID, mine, seckill.CodeFound, ""},
		"unknown request":      {"GET", "/v1/seckill/requests/r2" + query, mine, seckill.CodeProcessing, ""},
		"unknown order":        {"GET", "/v1/seckill/orders/" + unknownID, mine, seckill.CodeProcessing, ""},
		"another's request":    {"GET", "/v1/seckill/requests/r1" + query, sign(key, 8, f.activityID, soon), seckill.CodeForbidden, ""},
		"another's order":      {"GET", "/v1/seckill/orders/" + order.OrderID, sign(key, 8, f.activityID, soon), seckill.CodeForbidden, ""},
		"another activity":     {"GET", "/v1/seckill/requests/r1" + query, sign(key, 7, f.activityID+1, soon), seckill.CodeForbidden, ""},
		"no token":             {"GET", "/v1/seckill/requests/r1" + query, "", seckill.CodeUnauthenticated, ""},
		"no bearer":            {"GET", "/v1/seckill/requests/r1" + query, "Basic eA==", seckill.CodeUnauthenticated, ""},
		"forged token":         {"GET", "/v1/seckill/requests/r1" + query, mine[:len(mine)-4] + "AAAA", seckill.CodeUnauthenticated, ""},
		"expired token":        {"GET", "/v1/seckill/requests/r1" + query, sign(key, 7, f.activityID, time.Now().Add(-time.Second)), seckill.CodeUnauthenticated, ""},
		"bad request id":       {"GET", "/v1/seckill/requests/r%20x" + query, mine, seckill.CodeInvalidRequest, "request_id"},
		"empty request id":     {"GET", "/v1/seckill/requests/" + query, mine, seckill.CodeInvalidRequest, "request_id"},
		"bad reservation id":   {"GET", "/v1/seckill/reservations/resv_x" + query, mine, seckill.CodeInvalidRequest, "reservation_id"},
		"bad order id":         {"GET", "/v1/seckill/orders/7", mine, seckill.CodeInvalidRequest, "order_id"},
		"no activity":          {"GET", "/v1/seckill/requests/r1?sku_id=1", mine, seckill.CodeInvalidRequest, "activity_id"},
		"activity twice":       {"GET", "/v1/seckill/requests/r1" + query + "&activity_id=1", mine, seckill.CodeInvalidRequest, "activity_id"},
		"negative SKU":         {"GET", fmt.Sprintf("/v1/seckill/requests/r1?activity_id=%d&sku_id=-1", f.activityID), mine, seckill.CodeInvalidRequest, "sku_id"},
		"huge SKU":             {"GET", fmt.Sprintf("/v1/seckill/requests/r1?activity_id=%d&sku_id=99999999999999999999", f.activityID), mine, seckill.CodeInvalidRequest, "sku_id"},
		"bad before the token": {"GET", "/v1/seckill/requests/r1", "", seckill.CodeInvalidRequest, "activity_id"},
		"another method":       {"POST", "/v1/seckill/requests/r1" + query, mine, seckill.CodeMethodNotAllowed, ""},
		"another path":         {"GET", "/v1/seckill/hello", mine, seckill.CodeNotFound, ""},
		"pay is no query":      {"GET", "/v1/seckill/orders/" + order.OrderID + "/pay", mine, seckill.CodeMethodNotAllowed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, rc := get(test.method, test.uri, test.auth)
			if a.Code != test.code || a.Field != test.field || (test.field != "" && a.Reason == "") {
				t.Errorf("got %+v, want %s, field %q", a, test.code, test.field)
			}
			if got := string(rc.Response.Header.Peek("Cache-Control")); got != "no-store" {
				t.Errorf("Cache-Control %q", got)
			}
		})
	}
}

func TestHandlerRefusesNoKeys(t *testing.T) {
	if _, err := orders.Handler(t.Context(), nil); err == nil {
		t.Error("no error")
	}
}
