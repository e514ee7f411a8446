package scenarios

import (
	"fmt"
	"slices"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/system/seckill"
)

// KillPoint kills Member at the At-th hit of Point.
type KillPoint struct {
	Member string
	Point  seckill.FaultPoint
	At     int64
	// Alone freezes the others of its kind until it dies, so that it is the
	// one to get there, whatever the seed.
	Alone bool
}

func (k KillPoint) name() string { return (&chaos.KillAtPoint{Point: k.Point}).Name() }

// Validate wants a point there is.
func (k KillPoint) Validate() error {
	switch {
	case !slices.Contains(seckill.FaultPoints(), k.Point):
		return fmt.Errorf("fault point %q is not known", k.Point)
	case k.At < 1:
		return fmt.Errorf("hit %d of the point: counted from 1", k.At)
	}
	return nil
}

func (k KillPoint) fits(s *Scenario) error { return s.hasProcess(k.Member) }

func (k KillPoint) build(at site) (chaos.Fault, error) {
	m, err := at.member(k.Member)
	if err != nil {
		return nil, err
	}
	fault := &chaos.KillAtPoint{Process: m, Point: k.Point, At: k.At, HitFile: at.hitFile}
	for _, other := range at.members(m.Kind()) {
		if k.Alone && other != m {
			fault.Aside = append(fault.Aside, other)
		}
	}
	return fault, nil
}
