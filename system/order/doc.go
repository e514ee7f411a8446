// Package order turns order-create messages into orders. It is the only
// place where a reservation's fate is decided, and PostgreSQL, in one
// transaction a batch, is what decides it (specification 7.3, 9.2 to 9.5).
//
// A batch takes two statement round trips and a COMMIT. The first passes the
// SKU's gate, records the messages in the inbox, reads what is known about
// their reservations and users, and locks free units. Decisions are then
// made in memory (decide). The second writes orders, claims, ledger,
// reservation results and outbox events.
//
// Optimistic transactions pass the gate shared. One that lost a race is
// rolled back and run again with the gate to itself, so that its snapshot
// shows what it lost to. That includes the claim that found too little
// stock: zero rows under SKIP LOCKED mean sold out only when no unit is
// visible beyond the locked ones; otherwise another transaction may give
// units back, and to reject would sell less than there is.
//
// Process returns nil only when every delivery is decided and committed:
// ordered, rejected with its compensation, known from before, or parked as a
// dead letter. What the database refuses for a message's own sake is found
// by bisection and parked alone; what fails for the database's sake is tried
// again in place until the context ends. A COMMIT whose reply was lost is
// simply run again: the inbox knows.
package order
