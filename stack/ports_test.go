package stack

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestChosenBlockIsOneThatNoStackHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		// All are taken but a few in a row: enough that some of them are free on this machine.
		const left = 40
		from := firstBlock + blockSize*rapid.IntRange(0, (lastBlock-firstBlock)/blockSize-left).Draw(t, "from")
		var taken []Ports
		for base := firstBlock; base <= lastBlock; base += blockSize {
			if base < from || base >= from+left*blockSize {
				taken = append(taken, block(base))
			}
		}
		p, err := chooseBlock(taken, random)
		if err != nil {
			t.Fatal(err)
		}
		if p.base() < from || p.base() >= from+left*blockSize {
			t.Fatalf("%+v is another stack's", p)
		}
		if p.BrokerFast != p.Broker-2 {
			t.Fatalf("%+v: the broker will also take %d", p, p.Broker-2)
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
