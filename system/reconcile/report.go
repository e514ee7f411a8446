package reconcile

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is what a round found about one SKU and did about it.
type Report struct {
	ActivityID   int64        `json:"activity_id"`
	SKUID        int64        `json:"sku_id"`
	At           time.Time    `json:"at"` // PostgreSQL's clock
	Units        Units        `json:"units"`
	Reservations Reservations `json:"reservations"`
	Redis        Redis        `json:"redis"`
	// Delta is how many units and reservations are in no place or in two,
	// and by how much Redis' stock differs from its change log. 0: conserved.
	Delta int64 `json:"delta"`
	// Witnesses say in words what is wrong, WitnessMax at most.
	Witnesses []string `json:"witnesses,omitempty"`
	Repair    Repair   `json:"repair"`
}

// WitnessMax bounds what a report keeps.
const WitnessMax = 20

// Units are the tokens by where they are (12.5, first check).
type Units struct {
	Issued    int64 `json:"issued"`
	Available int64 `json:"available"`
	Claimed   int64 `json:"claimed"`
	Sold      int64 `json:"sold"`
	Released  int64 `json:"released"`
	// Misplaced are tokens whose order is not as their state says, and orders
	// whose token is not there.
	Misplaced int64 `json:"misplaced"`
	// ReleasePending are units of ended reservations on their way back to
	// Redis' stock: part of Available.
	ReleasePending int64 `json:"release_pending"`
	LedgerOff      int64 `json:"ledger_off"` // free units by the ledger, less those of the tokens
	OrdersCreated  int64 `json:"orders_created"`
	OrdersPaid     int64 `json:"orders_paid"`
}

// delta is how many units are misplaced, missing, or too many.
func (u *Units) delta() int64 {
	return u.Misplaced + abs(u.Issued-u.Available-u.Claimed-u.Sold-u.Released-u.Misplaced) + abs(u.LedgerOff)
}

// Reservations are those that Redis made, by where they are (12.5, second
// check).
type Reservations struct {
	Made                int64 `json:"made"`
	Ordered             int64 `json:"ordered"`
	Compensated         int64 `json:"compensated"`
	CompensationPending int64 `json:"compensation_pending"`
	InProcess           int64 `json:"in_process"`
	SetAside            int64 `json:"set_aside"`
	Stuck               int64 `json:"stuck"`
	Lost                int64 `json:"lost"`
	Vanished            int64 `json:"vanished"`
	Contradicted        int64 `json:"contradicted"`
	// Unapplied are those whose decision is overdue in Redis; each is counted
	// above, too.
	Unapplied int64 `json:"unapplied"`
	// NotInRedis were decided, and Redis' change log does not know them: it
	// lost its last writes. Not counted above; such reservations can end as
	// NO_FINAL_STOCK, never as one order too many.
	NotInRedis int64 `json:"not_in_redis"`
}

func (r *Reservations) delta() int64 { return r.Vanished + r.Contradicted }

// Redis is the stock by its change log.
type Redis struct {
	Known    bool  `json:"known"` // false: this Redis was never warmed for the SKU, or is empty
	Stock    int64 `json:"stock"`
	Pending  int64 `json:"pending"`
	LogBreak int64 `json:"log_break"` // by how much stock and log differ, anywhere
	// Drift is how many free units nobody can reach through Redis (positive),
	// or how many Redis offers that do not exist (negative). Exact only while
	// nothing moves.
	Drift int64 `json:"drift"`
}

// Repair is what a round found to mend, and did unless it was a dry run.
type Repair struct {
	DryRun       bool `json:"dry_run"`
	ResendDue    int  `json:"resend_due"`    // stuck and lost
	RepublishDue int  `json:"republish_due"` // unapplied
	// What this round takes on of them: not what was sent again lately, and
	// RepairLimit at most.
	Resend    []string `json:"resend,omitempty"`
	Republish []string `json:"republish,omitempty"`
	Resent    int      `json:"resent"` // confirmed by the broker
	// Republished are events handed to the publisher again; the others of
	// Republish wait for it already, or were published lately.
	Republished int      `json:"republished"`
	Failed      []string `json:"failed,omitempty"` // what could not be done; the next round tries again
}

// Conserved says that nothing is missing and nothing twice.
func (r *Report) Conserved() bool { return r.Delta == 0 }

// witness keeps words.
func (r *Report) witness(format string, args ...any) {
	if len(r.Witnesses) < WitnessMax {
		r.Witnesses = append(r.Witnesses, fmt.Sprintf(format, args...))
	}
}

// WriteText writes the report for a person.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	verdict := "conserved"
	if !r.Conserved() {
		verdict = fmt.Sprintf("NOT CONSERVED, delta %d", r.Delta)
	}
	u, v := &r.Units, &r.Reservations
	fmt.Fprintf(&b, "activity %d SKU %d: %s\n", r.ActivityID, r.SKUID, verdict)
	fmt.Fprintf(&b, "  units         %d issued = %d free + %d claimed + %d sold + %d released + %d misplaced; %d on their way back\n",
		u.Issued, u.Available, u.Claimed, u.Sold, u.Released, u.Misplaced, u.ReleasePending)
	fmt.Fprintf(&b, "  reservations  %d made = %d ordered + %d compensated + %d to be compensated + %d in process + %d set aside"+
		" + %d stuck + %d lost + %d vanished + %d contradicted\n",
		v.Made, v.Ordered, v.Compensated, v.CompensationPending, v.InProcess, v.SetAside, v.Stuck, v.Lost, v.Vanished, v.Contradicted)
	if r.Redis.Known {
		fmt.Fprintf(&b, "  redis         stock %d, off its log by %d, pending %d, drift %+d\n", r.Redis.Stock, r.Redis.LogBreak, r.Redis.Pending, r.Redis.Drift)
	} else {
		b.WriteString("  redis         does not know this SKU\n")
	}
	if v.NotInRedis > 0 {
		fmt.Fprintf(&b, "  %d decided reservations are not in Redis: it lost its last writes\n", v.NotInRedis)
	}
	for _, text := range r.Witnesses {
		fmt.Fprintf(&b, "  ! %s\n", text)
	}
	r.Repair.write(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// listMax is how many ids a person is shown.
const listMax = 10

func (p *Repair) write(b *strings.Builder) {
	line := func(would, done string, ids []string, n int) {
		if len(ids) == 0 {
			return
		}
		if p.DryRun {
			fmt.Fprintf(b, "  would %s %d:", would, len(ids))
		} else {
			fmt.Fprintf(b, "  %s %d of %d:", done, n, len(ids))
		}
		for _, id := range ids[:min(len(ids), listMax)] {
			b.WriteString(" " + id)
		}
		if more := len(ids) - listMax; more > 0 {
			fmt.Fprintf(b, " and %d more", more)
		}
		b.WriteByte('\n')
	}
	line("send again", "sent again", p.Resend, p.Resent)
	line("publish again the events of", "handed to the publisher again", p.Republish, p.Republished)
	for _, text := range p.Failed {
		fmt.Fprintf(b, "  failed: %s\n", text)
	}
}

func abs(n int64) int64 { return max(n, -n) }
