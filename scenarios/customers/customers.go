// Package customers does what buyers do after their request: they ask what
// became of it, and pay or cancel the order they find. Which of the requests
// sent so far is asked for is drawn from the plan's seed, and so is what its
// owner does.
//
// When all is over, Census has the owner of each accepted request ask once
// more. Every answer goes to Notes, by which verify judges whether a query
// forgot a request, or spoke of an order before there was one; here nothing is
// judged.
//
// Imports allowed: system/seckill, verify/rundir.
package customers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Shares of those who find an order, in thousandths: the others leave it
// unpaid.
const (
	payPermille    = 400
	cancelPermille = 200
)

// Bounds of the visits.
const (
	visitTimeout = 2 * time.Second
	visitsAtOnce = 8
)

// askAfter is how long after its request was due a buyer asks at the soonest.
const askAfter = 500 * time.Millisecond

// Config says who asks for what, and where.
type Config struct {
	Addrs      []string // of the orders processes, host:port; asked in turn
	Workload   rundir.Workload
	RatePerS   int64 // at which the plan's requests are due
	ActivityID int64
	SKUID      int64
	Key        seckill.TokenKey
	ExpiresAt  int64         // of the tokens, Unix seconds
	Every      time.Duration // between two visits
	Notes      *Notes        // takes every answer; nil keeps none
}

// Stats counts visits. Safe to read at any time.
type Stats struct {
	Asked     atomic.Int64
	Found     atomic.Int64 // answers that said how it stands
	Waiting   atomic.Int64 // PROCESSING
	Other     atomic.Int64 // other answers
	Paid      atomic.Int64
	Cancelled atomic.Int64
	Failed    atomic.Int64 // no answer, or none of the contract's
}

// Hits are the figures, by name.
func (s *Stats) Hits() map[string]int64 {
	return map[string]int64{"asked": s.Asked.Load(), "found": s.Found.Load(), "waiting": s.Waiting.Load(), "other": s.Other.Load(),
		"paid": s.Paid.Load(), "cancelled": s.Cancelled.Load(), "failed": s.Failed.Load()}
}

// Customers are the buyers of one sale.
type Customers struct {
	cfg    Config
	client *http.Client
	Stats  Stats
}

// New checks the configuration and returns customers; Run sends them.
func New(cfg Config) (*Customers, error) {
	switch {
	case len(cfg.Addrs) == 0:
		return nil, errors.New("customers: nobody to ask")
	case cfg.RatePerS < 1 || cfg.Every <= 0:
		return nil, fmt.Errorf("customers: rate %d and %v between visits must be positive", cfg.RatePerS, cfg.Every)
	}
	if _, err := seckill.NewTokenCodec(cfg.Key); err != nil {
		return nil, fmt.Errorf("customers: %w", err)
	}
	return &Customers{cfg: cfg, client: &http.Client{Timeout: visitTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: visitsAtOnce}}}, nil
}

// Run has buyers ask from now, when the plan's first request is due, until
// ctx ends, and waits for those who are asking then. A visit whose turn finds
// all places taken is left out.
func (c *Customers) Run(ctx context.Context) {
	defer c.client.CloseIdleConnections()
	var visits errgroup.Group
	visits.SetLimit(visitsAtOnce)
	tick := time.NewTicker(c.cfg.Every)
	defer tick.Stop()
	began := time.Now()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			_ = visits.Wait() // visits return no error
			return
		case now := <-tick.C:
			due := int64(now.Sub(began)-askAfter) * c.cfg.RatePerS / int64(time.Second)
			if due <= 0 {
				continue
			}
			n := rand.New(rand.NewPCG(c.cfg.Workload.Seed, uint64(turn))).Int64N(due)
			if pick := c.cfg.Workload.Pick(uint64(n)); pick.Kind == rundir.KindFresh {
				visits.TryGo(func() error { c.visit(turn, pick); return nil })
			}
		}
	}
}

// visit asks for a request and ends the order it finds, or does not.
func (c *Customers) visit(turn int, pick rundir.Pick) {
	c.Stats.Asked.Add(1)
	a, ok := c.call(turn, rundir.Query{Ask: rundir.AskRequest, User: pick.User, RequestID: c.cfg.Workload.RequestID(pick.Ordinal)})
	switch {
	case !ok:
		return
	case a.Code == seckill.CodeProcessing:
		c.Stats.Waiting.Add(1)
		return
	case a.Code != seckill.CodeFound:
		c.Stats.Other.Add(1)
		return
	}
	c.Stats.Found.Add(1)
	if a.Status != string(seckill.StatusOrderCreated) {
		return
	}
	switch roll := rand.New(rand.NewPCG(c.cfg.Workload.Seed, uint64(pick.Ordinal))).IntN(1000); {
	case roll < payPermille:
		c.end(turn, a, rundir.AskPay, pick.User, &c.Stats.Paid)
	case roll < payPermille+cancelPermille:
		c.end(turn, a, rundir.AskCancel, pick.User, &c.Stats.Cancelled)
	}
}

func (c *Customers) end(turn int, found seckill.Answer, how string, user int64, count *atomic.Int64) {
	q := rundir.Query{Ask: how, User: user, RequestID: found.RequestID, Order: found.OrderID}
	if a, ok := c.call(turn, q); ok && a.Code == seckill.CodeFound {
		count.Add(1)
	}
}

// call asks one process, and the next one if the first does not answer: all
// calls may be repeated. What was asked and answered is noted.
func (c *Customers) call(turn int, q rundir.Query) (seckill.Answer, bool) {
	method, path := http.MethodGet, fmt.Sprintf("/v1/seckill/requests/%s?activity_id=%d&sku_id=%d", q.RequestID, c.cfg.ActivityID, c.cfg.SKUID)
	if q.Ask != rundir.AskRequest {
		method, path = http.MethodPost, "/v1/seckill/orders/"+q.Order+"/"+q.Ask
	}
	for i := range c.cfg.Addrs {
		q.SentUS = time.Now().UnixMicro()
		a, err := c.ask(method, "http://"+c.cfg.Addrs[(turn+i)%len(c.cfg.Addrs)]+path, q.User)
		q.DoneUS = time.Now().UnixMicro()
		if err == nil {
			c.cfg.Notes.answered(q, a)
			return a, true
		}
		q.Failed = err.Error()
	}
	c.cfg.Notes.add(q)
	c.Stats.Failed.Add(1)
	return seckill.Answer{}, false
}

func (c *Customers) ask(method, url string, user int64) (seckill.Answer, error) {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return seckill.Answer{}, err
	}
	codec, err := seckill.NewTokenCodec(c.cfg.Key) // serves one at a time
	if err != nil {
		return seckill.Answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+string(codec.AppendSigned(nil, user, c.cfg.ActivityID, c.cfg.ExpiresAt)))
	resp, err := c.client.Do(req)
	if err != nil {
		return seckill.Answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return seckill.Answer{}, fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	return seckill.ParseAnswer(body)
}
