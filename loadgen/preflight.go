package loadgen

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// descriptorsOfOurs are open beside the connections: history, standard
// streams, the poller.
const descriptorsOfOurs = 32

// Preflight says what of this machine's limits the run may run into, one line
// each, before anything is opened. What cannot be read is not warned about.
func Preflight(cfg Config) []string {
	cfg = cfg.withDefaults()
	var limits systemLimits
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		limits.descriptors = files.Cur
	}
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &limits.ports[0], &limits.ports[1])
	}
	if text, err := os.ReadFile("/proc/net/sockstat"); err == nil {
		limits.timeWait = timeWait(string(text))
	}
	return limits.warn(cfg)
}

// systemLimits are what a machine allows; zero where unknown.
type systemLimits struct {
	descriptors uint64
	ports       [2]uint16
	timeWait    uint64 // ports that no connection may take again yet
}

func (l systemLimits) warn(cfg Config) (warnings []string) {
	if need := uint64(cfg.Conns + descriptorsOfOurs); l.descriptors > 0 && need > l.descriptors {
		warnings = append(warnings, fmt.Sprintf("%d connections need about %d file descriptors and this process may open %d: raise it with ulimit -n, or open fewer connections",
			cfg.Conns, need, l.descriptors))
	}
	ports := l.ports
	if cfg.LocalPorts != [2]uint16{} {
		ports = cfg.LocalPorts
	}
	if ports == [2]uint16{} {
		return warnings
	}
	// A port may serve one connection to each address.
	have := (uint64(ports[1]) - uint64(ports[0]) + 1) * uint64(len(cfg.Addrs))
	switch need := uint64(cfg.Conns); {
	case need > have:
		warnings = append(warnings, fmt.Sprintf("%d connections need as many local ports, and %d to %d to %d addresses are %d: widen net.ipv4.ip_local_port_range, or open fewer connections",
			cfg.Conns, ports[0], ports[1], len(cfg.Addrs), have))
	case need+l.timeWait > have:
		warnings = append(warnings, fmt.Sprintf("%d connections and %d local ports in TIME_WAIT may use up the range %d to %d: wait a minute, or widen net.ipv4.ip_local_port_range",
			cfg.Conns, l.timeWait, ports[0], ports[1]))
	}
	return warnings
}

// timeWait reads the number of sockets in TIME_WAIT from /proc/net/sockstat.
func timeWait(sockstat string) (n uint64) {
	for line := range strings.Lines(sockstat) {
		if rest, ok := strings.CutPrefix(line, "TCP:"); ok {
			words := strings.Fields(rest)
			for i := 0; i+1 < len(words); i += 2 {
				if words[i] == "tw" {
					_, _ = fmt.Sscan(words[i+1], &n)
				}
			}
		}
	}
	return n
}
