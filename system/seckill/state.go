package seckill

// ReservationStatus is a reservation's state (specification 8.2,
// contracts.md section 2). It moves only forward:
// PENDING_MESSAGE -> MESSAGE_SENT -> one end; EXPIRED and CANCELLED follow
// ORDER_CREATED. MESSAGE_SENT is an observation: nothing depends on it.
type ReservationStatus string

// The states of a reservation.
const (
	StatusPendingMessage        ReservationStatus = "PENDING_MESSAGE"
	StatusMessageSent           ReservationStatus = "MESSAGE_SENT"
	StatusOrderCreated          ReservationStatus = "ORDER_CREATED"
	StatusRejectedNoFinalStock  ReservationStatus = "REJECTED_NO_FINAL_STOCK"
	StatusRejectedDuplicateUser ReservationStatus = "REJECTED_DUPLICATE_USER"
	StatusRejectedLate          ReservationStatus = "REJECTED_LATE"
	StatusRejectedClosed        ReservationStatus = "REJECTED_CLOSED"
	StatusRejectedVersion       ReservationStatus = "REJECTED_VERSION"
	StatusRejectedPoison        ReservationStatus = "REJECTED_POISON"
	StatusSetAside              ReservationStatus = "SET_ASIDE"
	StatusExpired               ReservationStatus = "EXPIRED"
	StatusCancelled             ReservationStatus = "CANCELLED"
)

// StatusCompensated is shown by queries for a rejected, expired or cancelled
// reservation once its compensation was applied; it is never stored as status.
const StatusCompensated = "COMPENSATED"

// Undecided says that PostgreSQL has not (visibly) ended the reservation.
func (s ReservationStatus) Undecided() bool {
	return s == StatusPendingMessage || s == StatusMessageSent
}

// Rejected says that the reservation ended without ever becoming an order.
func (s ReservationStatus) Rejected() bool {
	switch s {
	case StatusRejectedNoFinalStock, StatusRejectedDuplicateUser, StatusRejectedLate,
		StatusRejectedClosed, StatusRejectedVersion, StatusRejectedPoison:
		return true
	}
	return false
}

// Compensated says that this end is followed by exactly one compensation
// event (invariant I9).
func (s ReservationStatus) Compensated() bool {
	return s.Rejected() || s == StatusExpired || s == StatusCancelled
}

// ReturnsStock says whether the compensation of this end gives the unit back
// to Redis: only if the unit still exists and may be sold. A reservation
// rejected for want of a token had none: giving it back would sell the
// phantom again, without end. resell is the activity's resale policy.
func (s ReservationStatus) ReturnsStock(resell bool) bool {
	switch s {
	case StatusRejectedDuplicateUser, StatusRejectedLate, StatusRejectedClosed,
		StatusRejectedVersion, StatusRejectedPoison:
		return true
	case StatusExpired, StatusCancelled:
		return resell
	}
	return false
}

// OrderStatus is an order's state.
type OrderStatus string

// The states of an order.
const (
	OrderCreated   OrderStatus = "CREATED"
	OrderPaid      OrderStatus = "PAID"
	OrderCancelled OrderStatus = "CANCELLED"
	OrderExpired   OrderStatus = "EXPIRED"
)

// Valid says that the order holds its unit.
func (s OrderStatus) Valid() bool { return s == OrderCreated || s == OrderPaid }

// TokenStatus is an inventory token's state (specification 6.7).
type TokenStatus string

// The states of an inventory token: one row a unit.
const (
	TokenAvailable TokenStatus = "AVAILABLE"
	TokenClaimed   TokenStatus = "CLAIMED"  // held by a created order
	TokenSold      TokenStatus = "SOLD"     // paid
	TokenReleased  TokenStatus = "RELEASED" // retired after cancel or expiry
)

// Taken says that the token belongs to exactly one valid order.
func (s TokenStatus) Taken() bool { return s == TokenClaimed || s == TokenSold }

// ActivityStatus is an activity's state, in PostgreSQL and in Redis meta.
type ActivityStatus string

// The states of an activity.
const (
	ActivityRunning ActivityStatus = "RUNNING"
	ActivityClosed  ActivityStatus = "CLOSED"
)
