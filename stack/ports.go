package stack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports are the TCP ports of one stack, a block of eight in a row of which seven are used. Everything
// listens on a loopback address, save the broker's replication (BrokerHA), which cannot be told to.
type Ports struct {
	Redis      int `json:"redis"`
	Postgres   int `json:"postgres"`
	NameServer int `json:"name_server"`
	// Broker also takes the port two below it, BrokerFast, by its own rule.
	BrokerFast    int `json:"broker_fast"`
	BrokerHA      int `json:"broker_ha"`
	Broker        int `json:"broker"`
	BrokerMetrics int `json:"broker_metrics"`
}

const (
	blockSize = 8
	// Blocks are chosen below the kernel's usual range of ephemeral ports (32768 and up), from which a
	// client connection could take a port before its server does.
	firstBlock, lastBlock = 20000, 31992
)

func block(base int) Ports {
	return Ports{Redis: base, Postgres: base + 1, NameServer: base + 2,
		BrokerFast: base + 3, BrokerHA: base + 4, Broker: base + 5, BrokerMetrics: base + 6}
}

func (p Ports) base() int { return p.Redis }

// checkBlock names the first port of the block that cannot be listened on.
func checkBlock(p Ports) error {
	for _, use := range []struct {
		port int
		by   string
	}{
		{p.Redis, "Redis"}, {p.Postgres, "PostgreSQL"}, {p.NameServer, "the RocketMQ name server"},
		{p.BrokerFast, "the RocketMQ broker's second listener"}, {p.BrokerHA, "the RocketMQ broker's replication"},
		{p.Broker, "the RocketMQ broker"}, {p.BrokerMetrics, "the RocketMQ broker's metrics"},
	} {
		// The wildcard address conflicts with a listener on any address.
		l, err := net.Listen("tcp4", ":"+strconv.Itoa(use.port))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("stack: port %d, wanted for %s, is in use: stop what listens there (ss -ltnp 'sport = :%d' names it) or choose another port base", use.port, use.by, use.port)
		case err != nil:
			return fmt.Errorf("stack: port %d, wanted for %s, cannot be listened on: %w", use.port, use.by, err)
		}
		_ = l.Close()
	}
	return nil
}

// chooseBlock returns a free block that none of the taken ones overlaps. The search starts at a random
// place so that stacks with different state folders, which do not see each other, rarely meet.
func chooseBlock(taken []Ports, random *rand.Rand) (Ports, error) {
	const n = (lastBlock-firstBlock)/blockSize + 1
	start := random.IntN(n)
	var err error
	for i := range n {
		p := block(firstBlock + (start+i)%n*blockSize)
		if overlaps(p, taken) {
			continue
		}
		if err = checkBlock(p); err == nil {
			return p, nil
		}
	}
	return Ports{}, fmt.Errorf("stack: no free block of %d ports between %d and %d: %w", blockSize, firstBlock, lastBlock+blockSize, err)
}

func overlaps(p Ports, taken []Ports) bool {
	for _, t := range taken {
		if p.base() < t.base()+blockSize && t.base() < p.base()+blockSize {
			return true
		}
	}
	return false
}
