package admission

import (
	"fmt"
	"slices"
	"strings"
)

// Stage is one stage of the funnel in front of Redis, in the order in which
// a request meets them (10.1).
type Stage uint8

// The stages. StageRequest cannot be switched off.
const (
	StageRequest      Stage = iota // a well-formed order
	StageProcessLimit              // this process's own limit; before the token, for it sheds load
	StageToken                     // the eligibility token
	StageUserLimit
	StageIPLimit
	StageDeviceLimit
	StageGate        // the sold-out gate
	StageValves      // the broker's breaker, and the valves: may anything be reserved now
	StageInFlightCap // requests on their way to Redis
	stageCount
)

// StageCount is the number of stages.
const StageCount = int(stageCount)

var stageNames = [...]string{"request", "process-limit", "token", "user-limit", "ip-limit", "device-limit", "gate", "valves", "in-flight-cap"}

// String is the stage's name in flags and metrics.
func (s Stage) String() string {
	if s < stageCount {
		return stageNames[s]
	}
	return fmt.Sprintf("Stage(%d)", uint8(s))
}

// Stages lists all stages in their order.
func Stages() []Stage {
	out := make([]Stage, StageCount)
	for i := range out {
		out[i] = Stage(i)
	}
	return out
}

// StageSet is a set of stages; the zero value is empty. As text it is their
// names, separated by commas.
type StageSet uint16

// Has says whether s is in the set.
func (set StageSet) Has(s Stage) bool { return set&(1<<s) != 0 }

// With returns the set with s in it.
func (set StageSet) With(s Stage) StageSet { return set | 1<<s }

// String is the set as text.
func (set StageSet) String() string {
	var names []string
	for _, s := range Stages() {
		if set.Has(s) {
			names = append(names, s.String())
		}
	}
	return strings.Join(names, ",")
}

// MarshalText writes the set as text.
func (set StageSet) MarshalText() ([]byte, error) { return []byte(set.String()), nil }

// UnmarshalText reads the names of stages that may be switched off.
func (set *StageSet) UnmarshalText(text []byte) error {
	var read StageSet
	for name := range strings.SplitSeq(string(text), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		i := slices.Index(stageNames[1:], name)
		if i < 0 {
			return fmt.Errorf("stage %q: must be one of %s", name, strings.Join(stageNames[1:], ", "))
		}
		read = read.With(Stage(i + 1))
	}
	*set = read
	return nil
}
