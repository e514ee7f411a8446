package verify

import (
	"strings"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

type tokenRow = rundir.TokenRow

func tokenTaken(t *tokenRow) bool { return seckill.TokenStatus(t.Status).Taken() }

// validOrdersOf lists the valid orders that name the token.
func (s *sale) validOrdersOf(token int64) []*rundir.OrderRow {
	var out []*rundir.OrderRow
	for _, o := range s.ordersByUnit[token] {
		if valid(o) {
			out = append(out, o)
		}
	}
	return out
}

// orderList names orders, "none" if there are none.
func orderList(orders []*rundir.OrderRow) string {
	if len(orders) == 0 {
		return "none"
	}
	words := make([]string, len(orders))
	for i, o := range orders {
		words[i] = orderWords(o)
	}
	return strings.Join(words, "; ")
}
