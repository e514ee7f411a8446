package admission

import (
	"fmt"
	"net/netip"
)

// LimitsConfig is what one process lets through (7.4: authentication and
// multi-dimension limits). Each process keeps its own count, so a client that
// reaches n of them has n times as much.
type LimitsConfig struct {
	Process Limit // of the whole process, before anything costs; off by default
	User    Limit // of one user
	IP      Limit // of one client address; off by default: many users stand behind one
	Device  Limit // of one X-Device-Id; requests without one are not limited by it
	Slots   int   // of each table; 8 bytes each

	// TrustedPeers are the peers, usually gateways, whose X-Forwarded-For is
	// believed. Empty: the client is who connects.
	TrustedPeers []netip.Prefix
}

// LimitsDefault never meets a user who acts by hand.
var LimitsDefault = LimitsConfig{User: Limit{10, 20}, Device: Limit{10, 20}, Slots: TableSlotsDefault}

// Limits are a process's buckets. Those that are off are nil.
type Limits struct {
	Process          *Bucket
	User, IP, Device *Table
}

// NewLimits makes the buckets, but for the stages to go without.
func NewLimits(c LimitsConfig, without StageSet) (*Limits, error) {
	for stage, limit := range map[Stage]*Limit{StageProcessLimit: &c.Process, StageUserLimit: &c.User, StageIPLimit: &c.IP, StageDeviceLimit: &c.Device} {
		if err := limit.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", stage, err)
		}
		if without.Has(stage) {
			*limit = Limit{}
		}
	}
	var l Limits
	var err error
	if l.Process, err = NewBucket(c.Process); err != nil {
		return nil, fmt.Errorf("%s: %w", StageProcessLimit, err)
	}
	for _, t := range []struct {
		stage Stage
		limit Limit
		table **Table
	}{{StageUserLimit, c.User, &l.User}, {StageIPLimit, c.IP, &l.IP}, {StageDeviceLimit, c.Device, &l.Device}} {
		if *t.table, err = NewTable(t.limit, c.Slots); err != nil {
			return nil, fmt.Errorf("%s: %w", t.stage, err)
		}
	}
	return &l, nil
}
