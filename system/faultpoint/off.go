//go:build !chaos

package faultpoint

import (
	"errors"

	"github.com/hotsku/hotsku/system/seckill"
)

// Enabled says whether this is a chaos build.
const Enabled = false

// Hit does nothing in this build.
func Hit(seckill.FaultPoint) {}

// Arm always fails in this build.
func Arm([]string, string) error {
	return errors.New("fault points exist in chaos builds only: use bin/seckill-chaos")
}
