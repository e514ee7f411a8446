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
	}
}
