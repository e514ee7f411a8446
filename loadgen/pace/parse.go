package pace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Defaults are what a shape without figures of its own is made of.
type Defaults struct {
	Rate float64 // requests per second
	Span time.Duration
	Seed uint64 // of what is drawn
}

// Forms describes what Parse reads, one form a line.
const Forms = `constant:RATE:DURATION
ramp:FROM:TO:DURATION             the rate changes evenly
step:FROM:TO:STEPS:DURATION       the same in steps of equal length
burst:COUNT:AT:DURATION           COUNT requests at the moment AT, nothing else
poisson:RATE:DURATION             arrivals independent of each other
sine:MEAN:AMPLITUDE:PERIOD:DURATION`

// Parse reads a shape: forms joined by "+" run at once, parts joined by ","
// one after another. A bare name is made of the defaults: ramp and step rise
// from 0 to the rate, burst is one second's requests at the start, sine swings
// by half the rate four times. What is drawn differs between the forms of one
// text, and is the same for equal seeds.
//
//	constant
//	ramp:0:1000:30s,constant:1000:1m
//	constant:200:1m+burst:5000:20s:1m
func Parse(text string, d Defaults) (Schedule, error) {
	var parts []Schedule
	forms := uint64(0)
	for _, part := range strings.Split(text, ",") {
		var at []Schedule
		for _, form := range strings.Split(part, "+") {
			d := d
			d.Seed += forms * 0x9e3779b97f4a7c15
			forms++
			s, err := parseForm(strings.TrimSpace(form), d)
			if err != nil {
				return nil, fmt.Errorf("shape %q: %w", strings.TrimSpace(form), err)
			}
			at = append(at, s)
		}
		s, err := compose(at, func() (Schedule, error) { return NewOverlay(at...) })
		if err != nil {
			return nil, fmt.Errorf("shape %q: %w", part, err)
		}
		parts = append(parts, s)
	}
	s, err := compose(parts, func() (Schedule, error) { return NewSequence(parts...) })
	if err != nil {
		return nil, fmt.Errorf("shape %q: %w", text, err)
	}
	return s, nil
}

// compose leaves a single part as it is.
func compose(parts []Schedule, of func() (Schedule, error)) (Schedule, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	return of()
}

func parseForm(form string, d Defaults) (Schedule, error) {
	name, rest, has := strings.Cut(form, ":")
	a := arguments{}
	if has {
		a.words = strings.Split(rest, ":")
	}
	switch bare := !has; name {
	case "constant":
		rate, span := d.Rate, d.Span
		if !bare {
			rate, span = a.rate("RATE"), a.duration("DURATION")
		}
		return made(a, func() (Schedule, error) { return NewConstant(rate, span) })
	case "ramp":
		from, to, span := 0.0, d.Rate, d.Span
		if !bare {
			from, to, span = a.rate("FROM"), a.rate("TO"), a.duration("DURATION")
		}
		return made(a, func() (Schedule, error) { return NewRamp(from, to, span) })
	case "step":
		from, to, steps, span := d.Rate/stepsDefault, d.Rate, uint64(stepsDefault), d.Span
		if !bare {
			from, to, steps, span = a.rate("FROM"), a.rate("TO"), a.count("STEPS"), a.duration("DURATION")
		}
		return made(a, func() (Schedule, error) { return newStairs(from, to, steps, span) })
	case "burst":
		total, at, span := uint64(max(d.Rate, 0)), time.Duration(0), d.Span
		if !bare {
			total, at, span = a.count("COUNT"), a.duration("AT"), a.duration("DURATION")
		}
		return made(a, func() (Schedule, error) { return NewBurst(total, at, span) })
	case "poisson":
		rate, span := d.Rate, d.Span
		if !bare {
			rate, span = a.rate("RATE"), a.duration("DURATION")
		}
		return made(a, func() (Schedule, error) { return NewPoisson(rate, span, d.Seed) })
	case "sine":
		mean, amplitude, period, span := d.Rate, d.Rate/2, d.Span/4, d.Span
		if !bare {
			mean, amplitude, period, span = a.rate("MEAN"), a.rate("AMPLITUDE"), a.duration("PERIOD"), a.duration("DURATION")
		}
		return made(a, func() (Schedule, error) { return NewSine(mean, amplitude, period, span) })
	}
	return nil, fmt.Errorf("%w %q: give constant, ramp, step, burst, poisson or sine", ErrShape, name)
}

// stepsDefault is how many steps a bare step has.
const stepsDefault = 5

// newStairs is a step of evenly changing rates.
func newStairs(from, to float64, steps uint64, span time.Duration) (Schedule, error) {
	if steps < 2 || steps > stepsMax {
		return nil, fmt.Errorf("%w: %d steps: give 2 to %d", ErrShape, steps, stepsMax)
	}
	rates := make([]float64, steps)
	for i := range rates {
		rates[i] = from + (to-from)*float64(i)/float64(steps-1)
	}
	return NewStep(rates, span/time.Duration(steps))
}

// arguments are what stands behind a form's name. The first error stays.
type arguments struct {
	words []string
	used  int
	err   error
}

func (a *arguments) next(what string) string {
	if a.used == len(a.words) {
		a.fail("%w: %s is missing", ErrShape, what)
		return ""
	}
	a.used++
	return strings.TrimSpace(a.words[a.used-1])
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

func (a *arguments) rate(what string) float64 {
	w := a.next(what)
	v, err := strconv.ParseFloat(w, 64)
	if err != nil {
		a.fail("%w %q for %s: give a number of requests per second", ErrRate, w, what)
	}
	return v
}

func (a *arguments) count(what string) uint64 {
	w := a.next(what)
	v, err := strconv.ParseUint(w, 10, 64)
	if err != nil {
		a.fail("%w: %q for %s: give a whole number", ErrShape, w, what)
	}
	return v
}

func (a *arguments) duration(what string) time.Duration {
	w := a.next(what)
	v, err := time.ParseDuration(w)
	if err != nil {
		a.fail("%w %q for %s: give one such as 90s or 1m30s", ErrDuration, w, what)
	}
	return v
}

// made makes the schedule if its arguments could be read, all of them.
func made(a arguments, of func() (Schedule, error)) (Schedule, error) {
	if a.err == nil && a.used < len(a.words) {
		a.fail("%w: nothing is known to do with %q", ErrShape, strings.Join(a.words[a.used:], ":"))
	}
	if a.err != nil {
		return nil, a.err
	}
	return of()
}
