package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process meant by an Identity no longer runs (it may have been replaced by
// another with the same pid).
var ErrGone = errors.New("proc: process is gone")

// clockTick is the unit of times in /proc: USER_HZ, which is 100 on every architecture Go runs on.
const clockTick = 10 * time.Millisecond

// Identity names one process for as long as the machine runs: a pid alone is reused.
// The zero value names no process.
type Identity struct {
	PID int `json:"pid"`
	// Start is field 22 of /proc/<pid>/stat: clock ticks between boot and the process's start.
	Start uint64 `json:"start"`
	// Boot is the kernel's id of the present boot.
	Boot string `json:"boot"`
}

// Self returns the identity of the calling process.
func Self() (Identity, error) { return Identify(os.Getpid()) }

// Identify returns the identity of the process that has this pid now; ErrGone if there is none.
func Identify(pid int) (Identity, error) {
	st, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("proc: read boot id: %w", err)
	}
	return Identity{PID: pid, Start: st.start, Boot: strings.TrimSpace(string(boot))}, nil
}

// Alive reports whether exactly this process still runs. A zombie does not run.
func (id Identity) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	now, err := Identify(id.PID)
	if err != nil || now != id {
		return false
	}
	st, err := readStat(id.PID)
	return err == nil && st.state != 'Z' && st.state != 'X'
}

// Kill ends this process and its descendants by SIGKILL and returns when they have ended; nil if it is
// gone already.
func (id Identity) Kill() error {
	if !id.Alive() {
		return nil
	}
	return signalTree(id, unix.SIGKILL)
}

// stat is the part of /proc/<pid>/stat this package reads.
type stat struct {
	pid   int
	state byte
	ppid  int
	// session is the pid of the session's leader.
	session int
	start   uint64
	// own and waited-for children's times
	user, system time.Duration
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return stat{}, ErrGone
	}
	if err != nil {
		return stat{}, fmt.Errorf("proc: read stat: %w", err)
	}
	return parseStat(pid, b)
}

func parseStat(pid int, b []byte) (stat, error) {
	// The command name is in parentheses and may hold anything, parentheses and spaces too.
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return stat{}, fmt.Errorf("proc: malformed stat of %d", pid)
	}
	s := stat{pid: pid, state: f[0][0]}
	var errs [7]error
	s.ppid, errs[0] = strconv.Atoi(f[1])
	s.session, errs[6] = strconv.Atoi(f[3])
	s.start, errs[1] = strconv.ParseUint(f[19], 10, 64)
	var ticks [4]int64
	for k := range ticks { // utime, stime, cutime, cstime: fields 14 to 17
		ticks[k], errs[2+k] = strconv.ParseInt(f[11+k], 10, 64)
	}
	s.user = time.Duration(ticks[0]+ticks[2]) * clockTick
	s.system = time.Duration(ticks[1]+ticks[3]) * clockTick
	if err := errors.Join(errs[:]...); err != nil {
		return stat{}, fmt.Errorf("proc: malformed stat of %d: %w", pid, err)
	}
	return s, nil
}
