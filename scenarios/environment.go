package scenarios

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hotsku/hotsku/verify/rundir"
)

// environment says where the run took place. What cannot be read stays
// empty: it decides nothing.
func environment() rundir.Environment {
	e := rundir.Environment{CPU: procField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Go: runtime.Version(), Colocated: true}
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
