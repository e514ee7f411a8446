// Package lifecycle ends orders: an order that was created is paid, cancelled
// by its user, or expires unpaid, whichever comes first, and stays so.
// PostgreSQL decides it, in one transaction:
//
//	the door      an inbox entry all three compete for, the reservation's end id
//	the decision  UPDATE orders ... WHERE status = 'CREATED' and, by the
//	              database's clock when the transaction began, before the
//	              payment is due (pay, cancel) or not before (expire)
//	its effects   token SOLD, RELEASED (policy retire) or AVAILABLE (resell),
//	              reservation, ledger, and the compensation in the outbox
//
// Entry and update both carry the whole decision: without its entry an order
// cannot be changed, and an entry whose order did not change is rolled back.
// Whoever comes later finds what was decided, and is told.
//
// An unpaid order is brought to its end by a delayed message of the broker
// (Scheduler sends it with the order's event, Reminders handles it) and,
// since messages can be lost, by a Sweeper behind it. Either may come early,
// late, twice or for an order nobody knows: the conditional update does not
// care. A user who comes first after the due time expires the order himself.
//
// Authoritative store: PostgreSQL. Imports allowed: system/seckill,
// system/order/allocate, pgx.
package lifecycle
