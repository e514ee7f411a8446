package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Direction of a stream.
type Direction string

// The directions, as toxiproxy names them.
const (
	ToServer Direction = "upstream"
	ToClient Direction = "downstream"
)

// Toxic bends one direction of every connection, also of those that are open.
// One of its fields is set.
type Toxic struct {
	Direction Direction
	// Latency delays what passes by so much, give or take Jitter.
	Latency, Jitter time.Duration
	// KiBPerS is the bandwidth.
	KiBPerS int64
	// Lost discards what passes; both directions lost are a black hole. When
	// it is taken away the connections that lost something are closed: their
	// streams have holes.
	Lost bool
}

// Effect is a toxic at work.
type Effect struct {
	name  string
	toxic Toxic
	acted func() int64
}

// Bytes is how much the toxic has acted on: delayed, throttled or discarded.
func (e *Effect) Bytes() int64 { return e.acted() }

// Name is one word for what it does.
func (t Toxic) Name() string {
	switch {
	case t.Lost:
		return "loss"
	case t.KiBPerS > 0:
		return "bandwidth"
	}
	return "latency"
}

// kind is its type in toxiproxy's registry.
func (t Toxic) kind() string {
	switch {
	case t.Lost:
		return lossType
	case t.KiBPerS > 0:
		return "bandwidth"
	}
	return latencyType
}

// Validate says what is wrong with it.
func (t Toxic) Validate() error {
	n := 0
	for _, set := range []bool{t.Latency != 0 || t.Jitter != 0, t.KiBPerS != 0, t.Lost} {
		if set {
			n++
		}
	}
	switch {
	case t.Direction != ToServer && t.Direction != ToClient:
		return fmt.Errorf("toxic: direction %q", t.Direction)
	case n != 1:
		return fmt.Errorf("toxic: %d effects, must be one", n)
	case t.Latency < 0 || t.Jitter < 0 || t.Jitter > t.Latency || t.KiBPerS < 0:
		return fmt.Errorf("toxic: latency %v ± %v, %d KiB/s: must not be negative, jitter at most the latency", t.Latency, t.Jitter, t.KiBPerS)
	}
	return nil
}

// Add has the toxic work on every connection from when it returns.
func (p *Proxy) Add(t Toxic) (*Effect, error) {
	if err := t.Validate(); err != nil {
		return nil, p.failed(err)
	}
	p.mu.Lock()
	p.effects++
	e := &Effect{name: fmt.Sprintf("%s-%d", t.kind(), p.effects), toxic: t}
	p.mu.Unlock()
	body, err := json.Marshal(map[string]any{"name": e.name, "type": t.kind(), "stream": t.Direction,
		"attributes": map[string]any{"latency": t.Latency, "jitter": t.Jitter, "seed": p.cfg.Seed, "rate": t.KiBPerS}})
	if err != nil {
		return nil, p.failed(err)
	}
	var wrapper *toxics.ToxicWrapper
	before := p.Counts()
	if err := p.within("add toxic "+e.name, func() (err error) {
		wrapper, err = p.toxi.Toxics.AddToxicJson(bytes.NewReader(body))
		return err
	}); err != nil {
		return nil, err
	}
	if counting, ok := wrapper.Toxic.(interface{ bytes() int64 }); ok {
		e.acted = counting.bytes
	} else { // a stock one: what passed since is what it acted on
		e.acted = func() int64 {
			now := p.Counts()
			if t.Direction == ToServer {
				return now.ToServer - before.ToServer
			}
			return now.ToClient - before.ToClient
		}
	}
	return e, nil
}

// Remove takes a toxic away.
func (p *Proxy) Remove(e *Effect) error {
	return p.within("remove toxic "+e.name, func() error { return p.toxi.Toxics.RemoveToxic(context.Background(), e.name) })
}

// Types of our toxics in toxiproxy's registry.
const (
	latencyType = "hotsku_latency"
	lossType    = "hotsku_loss"
)

// prepare registers our toxics, once, and silences the global logger that
// some of toxiproxy's write to.
var prepare = sync.OnceFunc(func() {
	toxics.Register(latencyType, new(latencyToxic))
	toxics.Register(lossType, new(lossToxic))
	zerolog.SetGlobalLevel(zerolog.Disabled)
})

// acted counts the bytes a toxic acted on, over all connections.
type acted struct{ n atomic.Int64 }

func (a *acted) bytes() int64 { return a.n.Load() }

// latencyToxic is toxiproxy's latency with jitter from a seed.
type latencyToxic struct {
	Latency time.Duration `json:"latency"`
	Jitter  time.Duration `json:"jitter"`
	Seed    uint64        `json:"seed"`

	links atomic.Uint64
	acted
}

// NewState is the randomness of one connection.
func (t *latencyToxic) NewState() any { return rand.New(rand.NewPCG(t.Seed, t.links.Add(1))) }

// GetBufferSize is toxiproxy's for latency: pieces wait without holding up those behind.
func (t *latencyToxic) GetBufferSize() int { return 1024 }

// Pipe delays each piece from when it came in.
func (t *latencyToxic) Pipe(stub *toxics.ToxicStub) {
	rng := stub.State.(*rand.Rand)
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			delay := t.Latency
			if t.Jitter > 0 {
				delay += time.Duration(rng.Int64N(int64(2*t.Jitter))) - t.Jitter
			}
			t.n.Add(int64(len(c.Data)))
			wait := time.NewTimer(delay - time.Since(c.Timestamp))
			select {
			case <-wait.C:
				stub.Output <- c
			case <-stub.Interrupt:
				wait.Stop()
				stub.Output <- c // at once: it must not be lost
				return
			}
		}
	}
}

// lossToxic discards what passes.
type lossToxic struct{ acted }

// NewState is what one connection lost, in bytes.
func (t *lossToxic) NewState() any { return new(int64) }

// Pipe discards each piece.
func (t *lossToxic) Pipe(stub *toxics.ToxicStub) {
	lost := stub.State.(*int64)
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			*lost += int64(len(c.Data))
			t.n.Add(int64(len(c.Data)))
		}
	}
}

// Cleanup closes a connection whose stream has a hole.
func (t *lossToxic) Cleanup(stub *toxics.ToxicStub) {
	if *stub.State.(*int64) > 0 {
		stub.Close()
	}
}
