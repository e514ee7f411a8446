package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/hotsku/hotsku/chaos/frame"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/stack"
)

// Way is how processes reach a store, where a proxy stands on it.
type Way struct {
	Store string // a name of package stack: redis, postgres or broker
	// Of is the kind of the processes whose way it is; empty: everybody's. The
	// broker tells all its clients one address.
	Of string
}

// name is what the proxy is called: "broker", "orders-redis".
func (w Way) name() string {
	if w.Of == "" {
		return w.Store
	}
	return w.Of + "-" + w.Store
}

// Validate wants a store that has a way.
func (w Way) Validate() error {
	switch {
	case !slices.Contains([]string{stack.RedisName, stack.PostgresName, stack.BrokerName}, w.Store):
		return fmt.Errorf("no way leads to %q", w.Store)
	case w.Store == stack.BrokerName && w.Of != "":
		return errors.New("the broker tells all its clients one address: its way is everybody's")
	}
	return nil
}

func (w Way) fits(s *Scenario) error {
	if w.Of != "" && s.processes(w.Of) == 0 {
		return fmt.Errorf("the fleet has no process of kind %q to have a way of its own", w.Of)
	}
	return nil
}

// onWay is the kind of a fault that needs a proxy.
type onWay interface{ way() Way }

// ways are those its faults need a proxy on, in their order.
func (s *Scenario) ways() []Way {
	var ways []Way
	for _, f := range s.Faults {
		if k, ok := f.Kind.(onWay); ok && !slices.Contains(ways, k.way()) {
			ways = append(ways, k.way())
		}
	}
	return ways
}

// brokerBehindProxy says whether the broker has to leave its address to one.
func (s *Scenario) brokerBehindProxy() bool {
	return slices.ContainsFunc(s.ways(), func(w Way) bool { return w.Store == stack.BrokerName })
}

// openWay starts the proxy of a way to the servers at real, and returns where
// they are by it.
func openWay(w Way, real stack.Addresses, seed uint64) (*proxy.Proxy, stack.Addresses, error) {
	cfg := proxy.Config{Name: w.name(), Listen: proxy.AnyAddr, Watchdog: proxy.WatchdogDefault, Seed: seed}
	by := real
	switch w.Store {
	case stack.RedisName:
		cfg.Upstream, cfg.Protocol = real.Redis, frame.Redis
	case stack.PostgresName:
		u, err := url.Parse(real.Postgres)
		if err != nil {
			return nil, by, fmt.Errorf("way %s: %w", w.name(), err)
		}
		cfg.Upstream, cfg.Protocol = u.Host, frame.Postgres
	default:
		cfg.Listen, cfg.Upstream, cfg.Protocol = real.Broker, real.BrokerDirect, frame.RocketMQ
	}
	p, err := proxy.Start(cfg)
	if err != nil {
		return nil, by, err
	}
	switch w.Store {
	case stack.RedisName:
		by.Redis = p.Addr()
	case stack.PostgresName:
		u, _ := url.Parse(real.Postgres) // parsed before
		u.Host = p.Addr()
		by.Postgres = u.String()
	}
	return p, by, nil
}

// openWays starts the proxies on the scenario's ways to the servers at real,
// before anybody dials, and tells where each listens.
func (r *runner) openWays(real stack.Addresses, listens func(w Way, addr string)) error {
	r.ways, r.dialsOf = map[Way]*proxy.Proxy{}, map[string]stack.Addresses{}
	ways := r.s.ways()
	// Everybody's first: a kind with ways of its own has everybody's to the other stores.
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(a.Of, b.Of) })
	for _, w := range ways {
		dials, own := r.dialsOf[w.Of]
		if !own {
			dials = r.dials
		}
		p, by, err := openWay(w, real, r.o.Seed)
		if err != nil {
			return err
		}
		r.ways[w] = p
		switch w.Store {
		case stack.RedisName:
			dials.Redis = by.Redis
		case stack.PostgresName:
			dials.Postgres = by.Postgres
		}
		if w.Of == "" {
			r.dials = dials
		} else {
			r.dialsOf[w.Of] = dials
		}
		listens(w, p.Addr())
	}
	return nil
}

// dialledBy is where processes of a kind find the servers.
func (r *runner) dialledBy(kind string) stack.Addresses {
	if own, ok := r.dialsOf[kind]; ok {
		return own
	}
	return r.dials
}

// closeWays ends the proxies.
func (r *runner) closeWays() error {
	var errs []error
	for _, p := range r.ways {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// way finds the proxy on a way.
func (at site) way(w Way) (*proxy.Proxy, error) {
	if p := at.ways[w]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no proxy stands on the way %s", w.name())
}
