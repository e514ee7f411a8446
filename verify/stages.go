package verify

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hotsku/hotsku/verify/rundir"
)

// stages measures where the time of an accepted request went, by the clocks
// of whoever saw it: the generator, Redis, the broker (whole milliseconds) and
// PostgreSQL, all of one machine. A reservation counts in the stages whose two
// ends are known.
func (e *evidence) stages() []rundir.Stage {
	if e.answers == nil {
		return []rundir.Stage{}
	}
	names := []string{
		"due → written: the generator",
		"written → reserved: network, edge, gate, queue, script",
		"reserved → answered: send, confirmation, network",
		"reserved → stored: send, broker's flush",
		"stored → ordered: delivery, transaction, commit",
		"due → ordered: all of it",
	}
	histograms := make([]*hdrhistogram.Histogram, len(names))
	for i := range histograms {
		histograms[i] = newHistogram()
	}
	first := e.firstAccepted()
	for _, s := range e.sales {
		for _, r := range s.reservations {
			reserved, known := r.reservedAt()
			i, asked := first[r.id]
			if !known || !asked {
				continue
			}
			record := &e.answers.kept[i]
			at := reserved.UnixNano() - e.answers.startUnixNano
			if at < record.Sent {
				continue // an earlier request reserved it, whose answer did not arrive
			}
			observe(histograms[0], record.Sent-record.Intended)
			observe(histograms[1], at-record.Sent)
			observe(histograms[2], record.Done-at)
			stored, found := r.storedAt()
			if found {
				observe(histograms[3], stored-reserved.UnixNano())
			}
			if j := slices.IndexFunc(r.sales, func(l *rundir.LedgerRow) bool { return !l.CommittedAt.IsZero() }); j >= 0 {
				ordered := r.sales[j].CommittedAt.UnixNano()
				if found {
					observe(histograms[4], ordered-stored)
				}
				observe(histograms[5], ordered-e.answers.startUnixNano-record.Intended)
			}
		}
	}
	out := []rundir.Stage{}
	for i, h := range histograms {
		if h.TotalCount() > 0 {
			out = append(out, rundir.Stage{Name: names[i], MS: percentiles(h)})
		}
	}
	return out
}

// firstAccepted is, for each reservation that an answer named as new, that
// answer's place among the kept ones. A repeat's answer says nothing of when
// it was reserved.
func (e *evidence) firstAccepted() map[string]int {
	first := map[string]int{}
	for i := range e.answers.kept {
		record := &e.answers.kept[i]
		if !codeOf(record).Accepted() {
			continue
		}
		id := named(record)
		if j, found := first[id]; !found || record.Sent < e.answers.kept[j].Sent {
			first[id] = i
		}
	}
	return first
}

// storedAt is when the broker stored the reservation's first message, Unix
// nanoseconds.
func (r *reservation) storedAt() (unixNano int64, found bool) {
	for _, m := range r.messages {
		if at := m.storedAtMS * 1e6; !found || at < unixNano {
			unixNano, found = at, true
		}
	}
	return unixNano, found
}
