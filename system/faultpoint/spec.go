package faultpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Spec is what a point is armed for.
type Spec struct {
	Point seckill.FaultPoint
	Kill  bool          // SIGKILL at the At-th hit
	Delay time.Duration // or sleep at the At-th and every later hit
	At    int64         // counted from 1
}

// ParseSpec reads NAME=kill, NAME=kill@N, NAME=delay:DURATION or
// NAME=delay:DURATION@N; N is 1 where it is left out.
func ParseSpec(text string) (Spec, error) {
	name, action, ok := strings.Cut(text, "=")
	if !ok {
		return Spec{}, fmt.Errorf("fault point %q: want NAME=kill@N or NAME=delay:DURATION@N", text)
	}
	spec := Spec{Point: seckill.FaultPoint(name), At: 1}
	if !slices.Contains(seckill.FaultPoints(), spec.Point) {
		return Spec{}, fmt.Errorf("fault point %q is not known; known are %v", name, seckill.FaultPoints())
	}
	action, at, counted := strings.Cut(action, "@")
	if counted {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil || n < 1 {
			return Spec{}, fmt.Errorf("fault point %q: %q must be a count from 1", text, at)
		}
		spec.At = n
	}
	if action == "kill" {
		spec.Kill = true
		return spec, nil
	}
	length, isDelay := strings.CutPrefix(action, "delay:")
	if !isDelay {
		return Spec{}, fmt.Errorf("fault point %q: action %q must be kill or delay:DURATION", text, action)
	}
	delay, err := time.ParseDuration(length)
	if err != nil || delay <= 0 || delay > time.Minute {
		return Spec{}, fmt.Errorf("fault point %q: delay %q must be a duration up to 1m", text, length)
	}
	spec.Delay = delay
	return spec, nil
}
