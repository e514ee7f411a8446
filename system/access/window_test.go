package access_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/access/submit"
	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/systest"
)

var windowKey = seckill.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")}

// confirmed is a broker that confirms everything.
type confirmed struct{}

func (confirmed) SendOrderCreates([]seckill.OrderCreateMessage) error { return nil }

// patient has time for a busy machine.
func patient() submit.Config {
	c := submit.ConfigDefault
	c.QueueWait, c.ReserveTimeout, c.CallTimeout, c.SendTimeout, c.AnswerBudget = time.Second, 10*time.Second, 10*time.Second, time.Second, time.Second
	return c
}

// process is an access process over a real Redis whose clock is off by skew.
func process(t *testing.T, store *reservation.Store, skew time.Duration) (url string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	now := func() time.Time { return time.Now().Add(skew) }
	path, err := submit.New(submit.Params{Config: patient(), Store: store, Sender: confirmed{},
		IDs: seckill.NewIDGenerator(now, [32]byte{byte(skew / time.Hour), 5}), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server, err := access.New(access.Params{Keys: []seckill.TokenKey{windowKey}, Gate: admission.NewGate(admission.GateConfigDefault, store, log),
		Submit: path, Log: log, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path.Start()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			t.Error(err)
		}
		path.Stop()
	})
	return "http://" + ln.Addr().String()
}

// Contracts 3, 7.4: whether an activity is open is judged by Redis's clock,
// inside the script. The clock of the access process decides nothing but
// whether a token has expired.
func TestTheActivitysWindowIsJudgedByTheServersClock(t *testing.T) {
	addr := systest.Redis(t)
	store, err := reservation.New(reservation.Config{Addr: addr}, lua.FS)
	if err != nil {
		t.Fatal(err)
	}
	raw := goredis.NewClient(&goredis.Options{Addr: addr})
	var made []reservation.SKU
	t.Cleanup(func() {
		ctx := context.Background()
		for _, sku := range made {
			if found, err := raw.Keys(ctx, seckill.KeysOf(sku.ActivityID, sku.SKUID).Prefix()+"*").Result(); err == nil && len(found) > 0 {
				raw.Del(ctx, found...)
			}
			raw.SRem(ctx, seckill.ActivityIndexKey, fmt.Sprintf("%d:%d", sku.ActivityID, sku.SKUID))
		}
		raw.Close()
		store.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	codec, err := seckill.NewTokenCodec(windowKey)
	if err != nil {
		t.Fatal(err)
	}
	// An activity that begins and ends by these times from now.
	activity := func(begins, ends time.Duration) int64 {
		t.Helper()
		sku := reservation.SKU{ActivityID: systest.ActivityID(), SKUID: 20001}
		made = append(made, sku)
		now := time.Now()
		if err := store.Warm(t.Context(), reservation.Activity{ActivityID: sku.ActivityID, SKUID: sku.SKUID, Stock: 100, Version: 1,
			StartsAt: now.Add(begins), EndsAt: now.Add(ends)}); err != nil {
			t.Fatal(err)
		}
		return sku.ActivityID
	}
	order := func(url string, id, user int64, requestID string, expires time.Time) seckill.Answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+access.Path,
			strings.NewReader(fmt.Sprintf(`{"activity_id":%d,"sku_id":20001,"request_id":%q,"quantity":1}`, id, requestID)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+string(codec.AppendSigned(nil, user, id, expires.Unix())))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		a, err := seckill.ParseAnswer(body)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}

	never := time.Now().Add(1000 * time.Hour)
	open, early, over := activity(-time.Hour, time.Hour), activity(time.Hour, 3*time.Hour), activity(-3*time.Hour, -time.Hour)
	for i, skew := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour, 400 * time.Hour, -400 * time.Hour} {
		url := process(t, store, skew)
		user := int64(i + 1)
		request := fmt.Sprintf("r%d", i)
		for _, c := range []struct {
			what     string
			activity int64
			want     seckill.Code
		}{{"open", open, seckill.CodeQueued}, {"not begun", early, seckill.CodeActivityInvalid}, {"over", over, seckill.CodeActivityInvalid}} {
			if a := order(url, c.activity, user, request, never); a.Code != c.want {
				t.Errorf("a process %v off, an activity that is %s: %+v, want %s", skew, c.what, a, c.want)
			}
		}
		if a := order(url, open, user, request, never); a.Code != seckill.CodeQueued || !a.Replayed {
			t.Errorf("a process %v off: sent again: %+v", skew, a)
		}
		// Only the token follows the process's clock.
		want := seckill.CodeQueued
		if skew > time.Hour {
			want = seckill.CodeUnauthenticated
		}
		if a := order(url, open, user, request, time.Now().Add(time.Hour)); a.Code != want {
			t.Errorf("a process %v off, a token for an hour: %+v, want %s", skew, a, want)
		}
	}

	// R7.9.1: what was reserved in time is told after the end, too.
	url := process(t, store, 0)
	end := time.Now().Add(-time.Second).UnixMicro()
	if err := raw.HSet(t.Context(), seckill.KeysOf(open, 20001).Meta(), "ends_at", end).Err(); err != nil {
		t.Fatal(err)
	}
	if a := order(url, open, 1, "r0", never); a.Code != seckill.CodeQueued || !a.Replayed {
		t.Errorf("sent again after the end: %+v", a)
	}
	if a := order(url, open, 1, "another", never); a.Code != seckill.CodeDuplicateUser {
		t.Errorf("a second order after the end: %+v", a)
	}
	if a := order(url, open, 77, "late", never); a.Code != seckill.CodeActivityInvalid {
		t.Errorf("a first order after the end: %+v", a)
	}
}
