package mutants

// All is the list of wrong designs. Each is run again by
// `hotsku mutants NAME --seed N`; how it is made is in package wirings.
func All() []Mutant {
	return []Mutant{
		{
			Name: "get-then-decr", Doc: "access reads the stock, then takes from it without looking again",
			Scenario: "two-accesses-sell-out", KilledBy: []string{"I1"},
		},
		{
			Name: "stock-rebuilt-ignoring-in-flight", Doc: "the stock in Redis is rebuilt from the orders there are, without the reservations under way",
			Scenario: "two-accesses-sell-out", KilledBy: []string{"I1"},
		},
		{
			Name: "gate-forgets-winners", Doc: "the sold-out gate refuses those who hold a reservation, too",
			Scenario: "two-accesses-sell-out", KilledBy: []string{"I6"},
		},
		{
			// R15.3, R7.7.3
			Name: "new-message-id-per-resend", Doc: "each resend gives the message a new id",
			Scenario: "kill-access-after-reserve", KilledBy: []string{"I7"},
		},
		{
			// R15.10
			Name: "client-retry-instead-of-scanner", Doc: "nobody resends what was never confirmed: the client is expected to try again",
			Scenario: "kill-access-after-reserve", KilledBy: []string{"I14"},
		},
		{
			// R15.12
			Name: "no-final-stock-check", Doc: "the consumer believes Redis, and sells another's unit where none is free",
			Scenario: "tokens-fewer-than-redis-stock", KilledBy: []string{"I1"},
		},
		{
			Name: "phantom-stock-returned", Doc: "a unit that never was goes back to Redis, which sells it again",
			Scenario: "tokens-fewer-than-redis-stock", KilledBy: []string{"I9"},
		},
		{
			Name: "gate-never-reopens", Doc: "the sold-out gate stays closed when units come back",
			Scenario: "resale-reopens-every-gate", KilledBy: []string{"I10"},
		},
		{
			Name: "ack-before-commit", Doc: "the consumer acknowledges a batch when it takes it in, and runs the transaction after",
			// Whom nobody was told of is lost as well: I3 counts reservations, I4 answers.
			Scenario: "one-consumer-dies", KilledBy: []string{"I3", "I4"},
		},
		{
			Name: "inbox-outside-the-transaction", Doc: "the inbox row is committed before the transaction that it is to make safe",
			Scenario: "one-consumer-dies", KilledBy: []string{"I3", "I4"},
		},
		{
			// R15.1
			Name: "order-success-on-reserve", Doc: "whoever asks is told of an order as soon as Redis holds a reservation",
			Scenario: "one-consumer-dies", KilledBy: []string{"I8"},
		},
		{
			// R15.11
			Name: "requery-miss-allows-new-purchase", Doc: "whoever asks while no order is found is told that nothing was accepted",
			Scenario: "one-consumer-dies", KilledBy: []string{"I13"},
		},
	}
}
