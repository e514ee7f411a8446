package cli

import "github.com/spf13/pflag"

// valveFlags say when no more reservations are made.
func (o *options) valveFlags(f *pflag.FlagSet) {
	b := &o.cfg.Breaker
	f.DurationVar(&b.Window, "breaker-window", b.Window, "how long the broker may confirm nothing before reservations stop")
	f.DurationVar(&b.OpenFor, "breaker-open", b.OpenFor, "how long they stop before a few try again")
	l := &o.cfg.Valves.Limits
	f.Int64Var(&l.Lag, "lag-limit", l.Lag, "create messages that may wait before reservations stop")
	f.DurationVar(&l.OldestMessage, "message-age-limit", l.OldestMessage, "how old the oldest of them may be")
	f.DurationVar(&l.OldestPending, "pending-age-limit", l.OldestPending, "how old the oldest reservation without a confirmed message may be")
	f.DurationVar(&l.DatabaseDown, "database-down-limit", l.DatabaseDown, "how long PostgreSQL may be away")
	f.DurationVar(&l.Stale, "valves-stale", l.Stale, "how long these figures may be missing, with no scanner running")
}
