package scenarios

import (
	"fmt"

	"github.com/hotsku/hotsku/scenarios/fleet"
)

// roleNice is what a kind's processes give way by. What a buyer waits for
// gives way to nobody.
func roleNice() map[string]int {
	return map[string]int{"access": 0, "consumer": 0, "orders": 5, "scanner": 10, "outbox": 15, "reconcile": 15}
}

// role is a process of a kind.
func role(name, kind string, chaosBuild bool, args ...string) fleet.Role {
	return fleet.Role{Name: name, Kind: kind, Args: args, Chaos: chaosBuild, Nice: roleNice()[kind]}
}

// defaultFleet is the product as one small machine runs it.
func defaultFleet(accesses int, chaosBuild bool) []fleet.Role {
	var roles []fleet.Role
	for _, kind := range []string{"consumer", "scanner", "outbox"} {
		roles = append(roles, role(kind, kind, chaosBuild))
	}
	for i := range accesses {
		roles = append(roles, role(fmt.Sprintf("access-%d", i+1), "access", chaosBuild))
	}
	return roles
}

// twoOfEach is the product with two processes a role, as it runs where no
// process may be missed. What is idle otherwise looks often enough to be in
// the midst of something whenever it dies.
func twoOfEach() []fleet.Role {
	var roles []fleet.Role
	for i := range 2 {
		for _, kind := range []string{"access", "consumer", "scanner", "outbox", "orders", "reconcile"} {
			var args []string
			if kind == "reconcile" {
				args = []string{"--reconcile-every", "250ms"}
			}
			roles = append(roles, role(fmt.Sprintf("%s-%d", kind, i+1), kind, true, args...))
		}
	}
	return roles
}

// withOrders adds a process of the buyers' window.
func withOrders(roles []fleet.Role) []fleet.Role {
	return append(roles, role("orders", "orders", true))
}
