package access

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/hotsku/hotsku/system/seckill"
)

// order is the body of POST /v1/seckill/orders.
type order struct {
	activityID, skuID, quantity int64
	requestID                   []byte // into the body, or unescaped
}

// parseOrder reads the one JSON object the endpoint takes, strictly: no
// unknown, repeated or missing field, no null, no fraction, nothing after the
// object. The error is a *seckill.FieldError. It allocates only for errors,
// request ids with escapes and numbers with a fraction or an exponent.
func parseOrder(body []byte) (order, error) {
	if o, ok := fixedOrder(body); ok { // usually
		return o, nil
	}
	p := orderParser{in: body}
	return p.parse()
}

const (
	seenActivity = 1 << iota
	seenSKU
	seenRequest
	seenQuantity
)

type orderParser struct {
	in []byte
	at int
}

func (p *orderParser) parse() (o order, err error) {
	if !p.take('{') {
		return o, &seckill.FieldError{Field: "body", Reason: "must be a JSON object"}
	}
	seen := 0
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return o, malformed()
		}
		name, err := p.text()
		if err != nil || !p.take(':') {
			return o, malformed()
		}
		var flag int
		switch string(name) {
		case "activity_id":
			flag = seenActivity
			o.activityID, err = p.integer("activity_id")
		case "sku_id":
			flag = seenSKU
			o.skuID, err = p.integer("sku_id")
		case "quantity":
			flag = seenQuantity
			o.quantity, err = p.integer("quantity")
		case "request_id":
			flag = seenRequest
			if p.peek() != '"' {
				return o, &seckill.FieldError{Field: "request_id", Reason: "must be a string"}
			}
			o.requestID, err = p.text()
		default:
			return o, &seckill.FieldError{Field: printable(name), Reason: "is not a field of this request"}
		}
		if err != nil {
			return o, err
		}
		if seen&flag != 0 {
			return o, &seckill.FieldError{Field: string(name), Reason: "appears twice"}
		}
		seen |= flag
	}
	p.space()
	switch {
	case p.at != len(p.in):
		return o, &seckill.FieldError{Field: "body", Reason: "has something after the JSON object"}
	case seen&seenActivity == 0:
		return o, &seckill.FieldError{Field: "activity_id", Reason: "is required"}
	case seen&seenSKU == 0:
		return o, &seckill.FieldError{Field: "sku_id", Reason: "is required"}
	case seen&seenRequest == 0:
		return o, &seckill.FieldError{Field: "request_id", Reason: "is required"}
	case seen&seenQuantity == 0:
		return o, &seckill.FieldError{Field: "quantity", Reason: "is required"}
	}
	return o, nil
}

func malformed() error { return &seckill.FieldError{Field: "body", Reason: "is not well-formed JSON"} }

func (p *orderParser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *orderParser) peek() byte {
	if p.at < len(p.in) && p.in[p.at] > ' ' { // usually
		return p.in[p.at]
	}
	p.space()
	if p.at == len(p.in) {
		return 0
	}
	return p.in[p.at]
}

func (p *orderParser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

// plainByte are the bytes that stand for themselves in a JSON string.
var plainByte = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// text reads a JSON string.
func (p *orderParser) text() ([]byte, error) {
	if !p.take('"') {
		return nil, malformed()
	}
	start, plain := p.at, true
	for ; p.at < len(p.in); p.at++ {
		c := p.in[p.at]
		if plainByte[c] {
			continue
		}
		switch {
		case c == '"':
			raw := p.in[start:p.at]
			p.at++
			if plain {
				return raw, nil
			}
			var s string
			quoted := p.in[start-1 : p.at]
			if !utf8.Valid(quoted) || json.Unmarshal(quoted, &s) != nil {
				return nil, malformed()
			}
			return []byte(s), nil
		case c == '\\':
			plain = false
			p.at++ // whatever is escaped does not end the string
		case c < 0x20:
			return nil, malformed()
		case c >= 0x80:
			plain = false
		}
	}
	return nil, malformed()
}

// integer reads a JSON number whose value is whole and within 64 bits, however
// it is written: to JSON Schema 1, 1.0 and 10e-1 are the same integer.
func (p *orderParser) integer(field string) (int64, error) {
	negative := p.peek() == '-'
	if negative {
		p.at++
	}
	start := p.at
	var n uint64
	for ; p.at < len(p.in) && p.in[p.at] >= '0' && p.in[p.at] <= '9'; p.at++ {
		if p.at-start >= 18 {
			return 0, &seckill.FieldError{Field: field, Reason: "is too large"}
		}
		n = n*10 + uint64(p.in[p.at]-'0')
	}
	switch {
	case p.at > start && p.in[start] == '0' && p.at-start > 1:
		return 0, malformed()
	case p.at == start:
		return 0, &seckill.FieldError{Field: field, Reason: "must be an integer"}
	case p.at < len(p.in) && (p.in[p.at] == '.' || p.in[p.at] == 'e' || p.in[p.at] == 'E'):
		var err error
		if n, err = p.scaled(field, start); err != nil {
			return 0, err
		}
	}
	if negative {
		return -int64(n), nil
	}
	return int64(n), nil
}

// scaled reads the number that begins at start and has a fraction, an
// exponent, or both.
func (p *orderParser) scaled(field string, start int) (uint64, error) {
	digits, point := append([]byte(nil), p.in[start:p.at]...), 0 // the value is digits * 10^point
	if p.in[p.at] == '.' {
		p.at++
		fraction := p.digits()
		if len(fraction) == 0 {
			return 0, malformed()
		}
		digits, point = append(digits, fraction...), -len(fraction)
	}
	if p.at < len(p.in) && (p.in[p.at] == 'e' || p.in[p.at] == 'E') {
		p.at++
		sign := 1
		if p.at < len(p.in) && (p.in[p.at] == '-' || p.in[p.at] == '+') {
			if p.in[p.at] == '-' {
				sign = -1
			}
			p.at++
		}
		exponent := p.digits()
		if len(exponent) == 0 {
			return 0, malformed()
		}
		e := 0
		for _, c := range exponent {
			e = min(e*10+int(c-'0'), 1<<20) // beyond any body
		}
		point += sign * e
	}
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) == 0 {
		return 0, nil
	}
	for point < 0 && digits[len(digits)-1] == '0' {
		digits, point = digits[:len(digits)-1], point+1
	}
	if point < 0 {
		return 0, &seckill.FieldError{Field: field, Reason: "must be an integer"}
	}
	if len(digits)+point > 18 {
		return 0, &seckill.FieldError{Field: field, Reason: "is too large"}
	}
	var n uint64
	for _, c := range digits {
		n = n*10 + uint64(c-'0')
	}
	for range point {
		n *= 10
	}
	return n, nil
}

// digits are those that come next.
func (p *orderParser) digits() []byte {
	start := p.at
	for p.at < len(p.in) && p.in[p.at] >= '0' && p.in[p.at] <= '9' {
		p.at++
	}
	return p.in[start:p.at]
}

// printable bounds what is repeated to the client of its own field name.
func printable(name []byte) string {
	if len(name) > 32 {
		name = name[:32]
	}
	out := make([]byte, len(name))
	for i, c := range name {
		if c < 0x20 || c >= 0x7f {
			c = '?'
		}
		out[i] = c
	}
	if len(out) == 0 {
		return "body"
	}
	return string(out)
}
