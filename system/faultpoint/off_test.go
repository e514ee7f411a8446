//go:build !chaos

package faultpoint

import (
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
)

// Production cannot be armed, and pays nothing for the points.
func TestTheOrdinaryBuildHasNoFaultPoints(t *testing.T) {
	if Enabled {
		t.Error("Enabled without the build tag")
	}
	if err := Arm([]string{"access.after-reserve=kill"}, t.TempDir()+"/hits"); err == nil || !strings.Contains(err.Error(), "seckill-chaos") {
		t.Errorf("Arm: %v", err)
	}
	for _, p := range seckill.FaultPoints() {
		Hit(p) // nothing happens
	}
	if n := testing.AllocsPerRun(100, func() { Hit(seckill.FaultAccessAfterReserve) }); n != 0 {
		t.Errorf("%v allocations a hit", n)
	}
}
