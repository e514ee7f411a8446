package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hotsku/hotsku/chaos/proxy"
)

// Trouble is what is wrong with the way to a store. One of its fields is set.
type Trouble struct {
	// Cut resets every connection, once.
	Cut bool
	// Refuse resets them and lets nobody in, until it is healed.
	Refuse bool
	// Toxics bend the streams.
	Toxics []proxy.Toxic
}

// Name is one word for it.
func (t Trouble) Name() string {
	switch {
	case t.Refuse:
		return "refuse"
	case t.Cut:
		return "cut"
	}
	var kinds []string
	for _, toxic := range t.Toxics {
		kinds = append(kinds, toxic.Name())
	}
	return strings.Join(kinds, "+")
}

// Validate says what is wrong with it.
func (t Trouble) Validate() error {
	n := 0
	for _, is := range []bool{t.Cut, t.Refuse, len(t.Toxics) > 0} {
		if is {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("trouble on a way: %d kinds, must be one", n)
	}
	for _, toxic := range t.Toxics {
		if err := toxic.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// WayBlocked troubles the way to a store some time into the load, until it is
// healed, or so often for so long.
type WayBlocked struct {
	Way     *proxy.Proxy
	Trouble Trouble
	Moment  Moment
	// Times is how often the trouble comes, 1 at least; all but the last time
	// for For, and as long apart.
	Times int
	For   time.Duration
	// Felt counts what the product does only because of it. The fault bites
	// when it has risen. nil asks for nothing.
	Felt Counter

	before  int64 // Felt's, when it began
	hits    map[string]int64
	effects []*proxy.Effect
	acted   int64 // bytes, of effects that were removed
	struck  bool
}

// WayBlockedName is that of a fault which troubles a way.
func WayBlockedName(t Trouble, way string) string { return t.Name() + "@" + way }

// Name is "TROUBLE@WAY", "refuse@broker".
func (b *WayBlocked) Name() string { return WayBlockedName(b.Trouble, b.Way.Name()) }

// Target is the way.
func (b *WayBlocked) Target() string { return b.Way.Name() }

// Setup has nothing to prepare: the way stands before there is any traffic.
func (b *WayBlocked) Setup(context.Context) error { return nil }

// Works is nil if the store answers through the way.
func (b *WayBlocked) Works(ctx context.Context) error { return b.Way.Works(ctx) }

// Inject waits for the moment and begins.
func (b *WayBlocked) Inject(ctx context.Context) (err error) {
	if err := b.Moment.Wait(ctx); err != nil {
		return err
	}
	if b.Felt != nil {
		if b.before, err = b.Felt(ctx); err != nil {
			return err
		}
	}
	b.hits = map[string]int64{"replies_before": b.Way.Counts().Replies}
	return b.begin()
}

// begin begins the trouble once more.
func (b *WayBlocked) begin() error {
	b.struck = true
	b.hits["times"]++
	switch {
	case b.Trouble.Cut:
		n, err := b.Way.Cut()
		b.hits["connections_cut"] += int64(n)
		return err
	case b.Trouble.Refuse:
		n, err := b.Way.Refuse()
		b.hits["connections_cut"] += int64(n)
		return err
	}
	for _, toxic := range b.Trouble.Toxics {
		e, err := b.Way.Add(toxic)
		if err != nil {
			return err
		}
		b.effects = append(b.effects, e)
	}
	return nil
}

// again lets it last, ends it, and begins anew after as long.
func (b *WayBlocked) again(ctx context.Context) error {
	if err := pause(ctx, b.For); err != nil {
		return err
	}
	if err := b.end(); err != nil {
		return err
	}
	if err := pause(ctx, b.For); err != nil {
		return err
	}
	return b.begin()
}

// end ends it.
func (b *WayBlocked) end() error {
	var errs []error
	for _, e := range b.effects {
		errs = append(errs, b.Way.Remove(e))
		b.acted += e.Bytes()
	}
	b.effects = nil
	if b.Trouble.Refuse {
		errs = append(errs, b.Way.Accept())
	}
	return errors.Join(errs...)
}

// bytes are what the toxics have acted on.
func (b *WayBlocked) bytes(context.Context) (int64, error) {
	acted := b.acted
	for _, e := range b.effects {
		acted += e.Bytes()
	}
	return acted, nil
}

// WaitUntilItBites sees it come as often as it is to come, act on what
// passes, and be felt.
func (b *WayBlocked) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	for b.hits["times"] < int64(b.Times) {
		if err := b.again(ctx); err != nil {
			return nil, "", err
		}
	}
	if len(b.effects) > 0 {
		n, err := Counter(b.bytes).rise(ctx, 0)
		if err != nil {
			return nil, "", err
		}
		b.hits["bytes_hit"] = n
	}
	if b.Felt != nil {
		felt, err := b.Felt.rise(ctx, b.before)
		if err != nil {
			return nil, "", err
		}
		b.hits["felt"] = felt
	}
	return b.hits, fmt.Sprintf("%v into the load", b.Moment.After), nil
}

// Heal frees the way.
func (b *WayBlocked) Heal(context.Context) error {
	if !b.struck {
		return nil // the moment never came
	}
	return b.end()
}

// WaitUntilHealed waits until the store answers through the way.
func (b *WayBlocked) WaitUntilHealed(ctx context.Context) error { return untilItWorks(ctx, b.Works) }
