package access

import "bytes"

// The pieces of the fixed body.
var (
	bodyActivity = []byte(`{"activity_id":`)
	bodySKU      = []byte(`,"sku_id":`)
	bodyRequest  = []byte(`,"request_id":"`)
	bodyQuantity = []byte(`","quantity":1}`)
)

// fixedOrder reads the body in the form that the interface's description
// shows: its fields in that order, without spaces, quantity 1. Of anything
// else it says no, and orderParser judges it; whatever this one takes, that
// one would take and read alike (FuzzFixedOrder).
func fixedOrder(in []byte) (o order, ok bool) {
	if in, ok = bytes.CutPrefix(in, bodyActivity); !ok {
		return order{}, false
	}
	if o.activityID, in, ok = fixedInteger(in); !ok {
		return order{}, false
	}
	if in, ok = bytes.CutPrefix(in, bodySKU); !ok {
		return order{}, false
	}
	if o.skuID, in, ok = fixedInteger(in); !ok {
		return order{}, false
	}
	if in, ok = bytes.CutPrefix(in, bodyRequest); !ok {
		return order{}, false
	}
	if in, ok = bytes.CutSuffix(in, bodyQuantity); !ok {
		return order{}, false
	}
	for _, c := range in {
		if !plainByte[c] {
			return order{}, false
		}
	}
	o.requestID, o.quantity = in, 1
	return o, true
}

// fixedInteger reads a positive number of up to 18 digits without a leading zero.
func fixedInteger(in []byte) (n int64, rest []byte, ok bool) {
	at := 0
	for ; at < len(in) && at < 18 && in[at] >= '0' && in[at] <= '9'; at++ {
		n = n*10 + int64(in[at]-'0')
	}
	return n, in[at:], at > 0 && in[0] != '0'
}
