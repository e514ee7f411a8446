package verify

import (
	"fmt"

	"github.com/hotsku/hotsku/verify/rundir"
)

// WitnessesMax bounds the violations shown in words; all are counted.
const WitnessesMax = 10

// check is one invariant.
type check struct {
	id, name string
	needs    []source // without these it is not checked
	history  bool     // it judges the answers, too
	run      func(*evidence, *finding)
}

// checks lists the invariants of this build, in the order they are reported.
func checks() []check {
	return []check{
		oversell, oneOrderAUser, conservation, nothingAcceptedLost, noPhantomOrder,
		idempotency, oneMessageID, noPrematureSuccess, compensationOnce, honestSoldOut, failClosed, nothingDeadSilently, queryNeverForgets, recoveredInTime, ledgerAgrees,
	}
}

// finding is what a check found.
type finding struct {
	checked    int64
	violations int64
	witness    []string
	blocked    []string // why it could not be checked

	evidence *evidence
	when     when // of what is being judged
}

func (f *finding) check(n int) { f.checked += int64(n) }

// violate counts a violation; its sentence says what was promised, what was
// found, and the delta, and then what went on around it.
func (f *finding) violate(format string, args ...any) {
	f.violations++
	if len(f.witness) < WitnessesMax {
		f.witness = append(f.witness, fmt.Sprintf(format, args...)+f.evidence.around(f.when))
	}
}

// block says why the invariant cannot be judged.
func (f *finding) block(reason string) { f.blocked = append(f.blocked, reason) }

func (c *check) judge(e *evidence) rundir.Invariant {
	f := &finding{evidence: e}
	for _, s := range c.needs {
		if fault := e.faults[s]; fault != nil {
			f.block(fault.Error())
		}
	}
	if c.history && e.plan != nil && len(e.plan.Activities) > 1 {
		f.block("plan.json: several activities, and a history does not say which one a request was for")
	}
	if len(f.blocked) == 0 {
		c.run(e, f)
	}
	inv := rundir.Invariant{ID: c.id, Name: c.name, Checked: f.checked, Violations: f.violations, Witness: f.witness}
	switch {
	case f.violations > 0:
		inv.Status = rundir.StatusViolated
	case len(f.blocked) > 0:
		inv.Status, inv.Checked, inv.Witness = rundir.StatusNotChecked, 0, f.blocked
	case f.checked == 0:
		inv.Status, inv.Witness = rundir.StatusNotChecked, []string{"there was nothing to check"}
	default:
		inv.Status = rundir.StatusHeld
	}
	return inv
}
