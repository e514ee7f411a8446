package scenarios

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/verify/rundir"
)

// environment says where the run took place. What cannot be read stays
// empty: it decides nothing.
func environment(roles []fleet.Role) rundir.Environment {
	e := rundir.Environment{CPU: procField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Go: runtime.Version(), Colocated: true, Niceness: niceness(roles)}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		e.MemoryGiB = int((info.Totalram*uint64(info.Unit) + 1<<29) >> 30)
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		e.Kernel = fmt.Sprintf("%s %s", unix.ByteSliceToString(uts.Sysname[:]), unix.ByteSliceToString(uts.Release[:]))
	}
	return e
}

// serverNice is what the servers give way by. One machine carries what a
// deployment spreads over several: what nobody waits for yields to what an
// answer waits for, and the report says so. Orders must be there within
// seconds, so their consumer and PostgreSQL give way to nobody.
func serverNice() map[string]int {
	return map[string]int{stack.BrokerName: 3, stack.NameServerName: 10}
}

func niceness(roles []fleet.Role) string {
	nice := serverNice()
	for _, r := range roles {
		if r.Nice > 0 {
			nice[r.Name] = r.Nice
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(nice)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, nice[name]))
	}
	return strings.Join(parts, ", ")
}

// procField is the value of the first "name : value" line.
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if field, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(field) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
