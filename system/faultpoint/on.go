//go:build chaos

package faultpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// Enabled says whether this is a chaos build.
const Enabled = true

type point struct {
	spec  Spec
	count atomic.Int64
}

// armed is written once by Arm, before the process works, and only read after.
var armed atomic.Pointer[map[seckill.FaultPoint]*point]

var hits struct {
	sync.Mutex
	file *os.File
}

// Arm arms points by specs as ParseSpec reads them and opens the file their
// hits are appended to. Call it once, before any Hit.
func Arm(specs []string, hitFile string) error {
	points := make(map[seckill.FaultPoint]*point, len(specs))
	for _, text := range specs {
		spec, err := ParseSpec(text)
		if err != nil {
			return err
		}
		if points[spec.Point] != nil {
			return fmt.Errorf("fault point %s is armed twice", spec.Point)
		}
		points[spec.Point] = &point{spec: spec}
	}
	if len(points) == 0 {
		return nil
	}
	if hitFile == "" {
		return fmt.Errorf("an armed fault point needs --faultpoint-file, where its hits are noted")
	}
	f, err := os.OpenFile(hitFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open fault point file: %w", err)
	}
	hits.file = f
	armed.Store(&points)
	return nil
}

// Hit counts that the process reached p and does what p is armed for.
func Hit(p seckill.FaultPoint) {
	points := armed.Load()
	if points == nil {
		return
	}
	pt := (*points)[p]
	if pt == nil {
		return
	}
	n := pt.count.Add(1)
	switch {
	case pt.spec.Kill && n == pt.spec.At:
		note(p, n, "kill")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // SIGKILL cannot be outlived; never run on past the point
	case !pt.spec.Kill && n >= pt.spec.At:
		if n == pt.spec.At {
			note(p, n, "delay")
		}
		time.Sleep(pt.spec.Delay)
	}
}

func note(p seckill.FaultPoint, n int64, action string) {
	line, err := json.Marshal(seckill.FaultHit{Point: p, Count: n, Action: action, PID: os.Getpid(),
		At: time.Now().UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return
	}
	hits.Lock()
	defer hits.Unlock()
	if _, err := hits.file.Write(append(line, '\n')); err == nil {
		_ = hits.file.Sync()
	}
}
