package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// sessionsEvery is how soon a new session is found: backends live for minutes.
const sessionsEvery = 250 * time.Millisecond

// keepSessions gives the children that began a session of their own the
// niceness of the program, until done. Linux shares the processors out among
// sessions first (sched(7), autogroup): the niceness of PostgreSQL's backends,
// each of which calls setsid, would count for nothing, and each would take as
// much as everything else together. Where there are no autogroups it does
// nothing.
func keepSessions(pid, nice int, done <-chan struct{}) {
	if on, err := os.ReadFile("/proc/sys/kernel/sched_autogroup_enabled"); err != nil || strings.TrimSpace(string(on)) != "1" {
		return
	}
	tick := time.NewTicker(sessionsEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			for _, child := range leaders(pid) {
				// One that has ended, or a kernel that says later, is met again or not.
				_ = niceSession(child, nice)
			}
		}
	}
}

// leaders are the children of pid that lead a session.
func leaders(pid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, field := range strings.Fields(string(text)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			continue
		}
		if st, err := readStat(child); err == nil && st.session == child {
			out = append(out, child)
		}
	}
	return out
}

// niceSession sets the niceness of a process's session, if it has another.
func niceSession(pid, nice int) error {
	path := fmt.Sprintf("/proc/%d/autogroup", pid)
	has, err := os.ReadFile(path) // "/autogroup-123 nice 0"
	if err != nil || strings.HasSuffix(strings.TrimSpace(string(has)), " nice "+strconv.Itoa(nice)) {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(nice)), 0)
}
