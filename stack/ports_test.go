package stack

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestChosenBlocksNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var taken []Ports
		for range rapid.IntRange(1, 5).Draw(t, "stacks") {
			p, err := chooseBlock(taken, random)
			if err != nil {
				t.Fatal(err)
			}
			if overlaps(p, taken) {
				t.Fatalf("%+v overlaps one of %+v", p, taken)
			}
			if p.BrokerFast != p.Broker-2 {
				t.Fatalf("%+v: the broker will also take %d", p, p.Broker-2)
			}
			taken = append(taken, p)
		}
	})
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b int
		want bool
	}{{20000, 20000, true}, {20000, 20007, true}, {20007, 20000, true}, {20000, 20008, false}, {20008, 20000, false}} {
		if got := overlaps(block(c.a), []Ports{block(c.b)}); got != c.want {
			t.Errorf("%d and %d: %v", c.a, c.b, got)
		}
	}
}
