package order

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hotsku/hotsku/system/order/allocate"
	"github.com/hotsku/hotsku/system/seckill"
)

// Delivery is one message as the broker handed it over.
type Delivery struct {
	Topic          string
	Queue          int
	Offset         int64
	Body           []byte // not retained after Process returns
	ReconsumeTimes int
}

// message is a delivery that could be decoded and checked.
type message struct {
	seckill.OrderCreateMessage
	delivery Delivery
}

// deadLetter is a delivery that no retry turns into a decision. Its message
// holds what could be read.
type deadLetter struct {
	message
	class string
	cause error
}

// Classes of dead letters, as stored.
const (
	classPoison      = "poison"
	classNewerSchema = "newer_schema"
	classRefused     = "refused_by_database"
)

// intake is a batch of deliveries, sorted out before the database is asked.
type intake struct {
	groups     map[allocate.SKU][]message // each sorted by message id, without repeats
	skus       []allocate.SKU             // the keys of groups, sorted
	dead       []deadLetter
	duplicates int // repeats of a message id within the batch
}

// sortOut decodes the deliveries and groups them by SKU. Sorting by message
// id makes concurrent batches lock inbox entries in one order.
func sortOut(deliveries []Delivery) intake {
	in := intake{groups: make(map[allocate.SKU][]message)}
	seen := make(map[string]struct{}, len(deliveries))
	for _, d := range deliveries {
		m, class, err := decode(d)
		if err != nil {
			in.dead = append(in.dead, deadLetter{m, class, err})
			continue
		}
		if _, again := seen[m.MessageID]; again {
			in.duplicates++
			continue
		}
		seen[m.MessageID] = struct{}{}
		sku := m.sku()
		if in.groups[sku] == nil {
			in.skus = append(in.skus, sku)
		}
		in.groups[sku] = append(in.groups[sku], m)
	}
	for _, group := range in.groups {
		slices.SortFunc(group, func(a, b message) int { return cmp.Compare(a.MessageID, b.MessageID) })
	}
	slices.SortFunc(in.skus, func(a, b allocate.SKU) int {
		return cmp.Or(cmp.Compare(a.ActivityID, b.ActivityID), cmp.Compare(a.SKUID, b.SKUID))
	})
	return in
}

func decode(d Delivery) (m message, class string, err error) {
	m.delivery = d
	m.OrderCreateMessage, err = seckill.DecodeOrderCreate(d.Body)
	switch {
	case err == nil && !printable(m.MessageID):
		err = fmt.Errorf("%w: %w", seckill.ErrPoison,
			&seckill.FieldError{Field: "message_id", Reason: "must be printable ASCII"})
		class = classPoison
	case err == nil:
	case isNewerSchema(err):
		class = classNewerSchema
	default:
		class = classPoison
	}
	return m, class, err
}

func (m *message) sku() allocate.SKU {
	return allocate.SKU{ActivityID: m.ActivityID, SKUID: m.SKUID}
}

// identified says that the reservation behind a broken message is known well
// enough to be rejected and compensated.
func (m *message) identified() bool {
	return seckill.ValidReservationID(m.ReservationID) &&
		m.ActivityID > 0 && m.SKUID > 0 && m.UserID > 0 &&
		m.MessageID != "" && len(m.MessageID) <= 64 && printable(m.MessageID) &&
		seckill.ValidateRequestID(m.RequestID) == nil &&
		!m.ReservedAt.IsZero()
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
