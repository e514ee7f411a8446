package valve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotsku/hotsku/system/reservation"
)

// Source measures some signals.
type Source struct {
	Name    string // in logs
	Measure func(ctx context.Context) (map[Signal]int64, error)
}

// Poster takes the figures.
type Poster interface {
	PostSignals(ctx context.Context, signals []reservation.Signal) error
}

// PublisherConfig says how often to measure.
type PublisherConfig struct {
	Every time.Duration // between two measurements of a source
	Call  time.Duration // bound of one, and of its posting
}

// PublisherConfigDefault leaves a watcher SpreadMax.
var PublisherConfigDefault = PublisherConfig{Every: 400 * time.Millisecond, Call: 300 * time.Millisecond}

// Validate checks the bounds.
func (c PublisherConfig) Validate() error {
	if c.Every <= 0 || c.Call <= 0 || c.Every+c.Call > SpreadMax*3/4 {
		return fmt.Errorf("valves: a measurement every %v bounded by %v: both must be positive and together at most %v", c.Every, c.Call, SpreadMax*3/4)
	}
	return nil
}

// Publisher measures and posts. Several may run: they post the same figures.
type Publisher struct {
	cfg     PublisherConfig
	post    Poster
	sources []Source
	log     *slog.Logger

	// Values hold what was measured last, for metrics.
	Values map[Signal]*atomic.Int64
}

// NewPublisher returns a publisher of the given sources.
func NewPublisher(cfg PublisherConfig, post Poster, sources []Source, log *slog.Logger) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if post == nil || len(sources) == 0 || log == nil {
		return nil, errors.New("valves: a poster, sources and a log are required")
	}
	p := &Publisher{cfg: cfg, post: post, sources: sources, log: log, Values: map[Signal]*atomic.Int64{}}
	for _, s := range Signals() {
		p.Values[s] = new(atomic.Int64)
	}
	return p, nil
}

// Run measures and posts until ctx ends, each source at its own pace: one that
// hangs holds up no other. What cannot be measured is not posted, and grows
// stale at the watchers.
func (p *Publisher) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range p.sources {
		running.Go(func() { p.follow(ctx, s) })
	}
	running.Wait()
}

func (p *Publisher) follow(ctx context.Context, s Source) {
	tick := time.NewTicker(p.cfg.Every)
	defer tick.Stop()
	failing := false
	for {
		err := p.once(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing { // once an outage
			p.log.Warn("a figure for the valves is missing", "source", s.Name, "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Publisher) once(ctx context.Context, s Source) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Call)
	defer cancel()
	figures, err := s.Measure(ctx)
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	signals := make([]reservation.Signal, 0, len(figures))
	for name, value := range figures {
		if v := p.Values[name]; v != nil {
			v.Store(value)
		}
		signals = append(signals, reservation.Signal{Name: string(name), Value: value})
	}
	if err := p.post.PostSignals(ctx, signals); err != nil {
		return err
	}
	return nil
}
