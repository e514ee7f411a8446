package order

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/seckill"
)

var (
	// errInDoubt ends an attempt that found too little stock without being
	// able to prove that there is no more.
	errInDoubt = errors.New("order: stock neither found nor proved exhausted")
	// errUnknownSKU ends an attempt for a SKU that was never issued.
	errUnknownSKU = errors.New("order: no such activity and SKU in the database")
	// errUnparkable wraps the refusal of a bare dead letter. Nothing of the
	// message's content is left to refuse, so the fault is not its own, and
	// giving it up would lose it.
	errUnparkable = errors.New("order: dead letter refused")
)

// failure is what may be done about an attempt that failed.
type failure int

const (
	// lostRace: another transaction won something. Run again behind the
	// exclusive gate; the new snapshot shows what was lost to.
	lostRace failure = iota + 1
	// collision: as lostRace, but if it stays, the message is at fault.
	collision
	// refused: the database will not take this content, however often.
	refused
	// transient: the outcome is unknown or the database is not able now.
	// Never a reason to bisect: an outage would park good messages.
	transient
)

// classify reads an attempt's error. SQLSTATE classes: 22 data exception, 23
// integrity violation; everything not known to be about the content is
// transient, an unmigrated schema (42) included.
func classify(err error) failure {
	if errors.Is(err, errInDoubt) || errors.Is(err, allocate.ErrUnitsLost) {
		return lostRace
	}
	if errors.Is(err, errUnknownSKU) {
		return refused
	}
	var pg *pgconn.PgError
	if errors.Is(err, errUnparkable) || !errors.As(err, &pg) {
		return transient
	}
	switch {
	case pg.Code == "40001", pg.Code == "40P01", pg.Code == "55P03":
		return lostRace
	case pg.Code == "23505":
		return collision
	case strings.HasPrefix(pg.Code, "22"), strings.HasPrefix(pg.Code, "23"):
		return refused
	}
	return transient
}

func isNewerSchema(err error) bool { return errors.Is(err, seckill.ErrNewerSchema) }
