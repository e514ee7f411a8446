package chaos

import (
	"context"
	"fmt"
	"time"
)

// Deed is a fault in what the stores hold, not in a server: it is done once,
// at its moment, and undone when it is healed.
type Deed struct {
	Called, On string
	Moment     Moment
	// Check is nil if what it is done to works.
	Check func(ctx context.Context) error
	// Do does it, and says what it did.
	Do func(ctx context.Context) (hits map[string]int64, detail string, err error)
	// Felt counts what the product does only because of it; the fault bites when
	// it has risen. nil asks for nothing more than that it was done.
	Felt Counter
	// Undo takes it back, as far as it was done; nil: there is nothing to take
	// back.
	Undo func(ctx context.Context) error

	before int64
	hits   map[string]int64
	detail string
}

// Name is Called.
func (d *Deed) Name() string { return d.Called }

// Target is On.
func (d *Deed) Target() string { return d.On }

// When is its moment.
func (d *Deed) When() time.Duration { return d.Moment.After }

// Setup has nothing to prepare.
func (d *Deed) Setup(context.Context) error { return nil }

// Works is Check.
func (d *Deed) Works(ctx context.Context) error { return d.Check(ctx) }

// Inject waits for the moment and does it.
func (d *Deed) Inject(ctx context.Context) (err error) {
	if err := d.Moment.Wait(ctx); err != nil {
		return err
	}
	if d.Felt != nil {
		if d.before, err = d.Felt(ctx); err != nil {
			return err
		}
	}
	d.hits, d.detail, err = d.Do(ctx)
	return err
}

// WaitUntilItBites returns what was done, when the product felt it.
func (d *Deed) WaitUntilItBites(ctx context.Context) (map[string]int64, string, error) {
	if d.Felt != nil {
		felt, err := d.Felt.rise(ctx, d.before)
		if err != nil {
			return nil, "", fmt.Errorf("%s: wait until it is felt: %w", d.detail, err)
		}
		d.hits["felt"] = felt
	}
	return d.hits, fmt.Sprintf("%v into the load: %s", d.Moment.After, d.detail), nil
}

// Heal is Undo.
func (d *Deed) Heal(ctx context.Context) error {
	if d.Undo == nil {
		return nil
	}
	return d.Undo(ctx)
}

// WaitUntilHealed has nothing to wait for.
func (d *Deed) WaitUntilHealed(context.Context) error { return nil }
