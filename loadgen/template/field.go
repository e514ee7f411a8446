package template

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Fields describes what a template may hold.
const Fields = `{{n}}           number of the request, from 0
{{user}}        number of the user
{{uuid}}        a UUID, another for each request
{{rand:LO:HI}}  a number between LO and HI, both included
{{n:8}} {{user:8}}  the same with leading zeros, 8 digits at least`

type kind uint8

const (
	literal kind = iota
	number
	user
	uuid
	random
)

// part is a piece of a request: bytes as they are, or a field.
type part struct {
	kind    kind
	literal []byte
	digits  int    // at least
	low     uint64 // of random
	span    uint64 // of random: high-low
	field   uint64 // counts the fields of the template
}

// parse cuts text at its fields.
func (t *Template) parse(text string, plain bool) (parts []part, err error) {
	for text != "" {
		before, rest, found := strings.Cut(text, "{{")
		if plain || !found {
			return append(parts, part{literal: []byte(text)}), nil
		}
		inside, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, fmt.Errorf("%w: {{%.20s is not closed; --literal leaves braces alone", ErrRequest, rest)
		}
		if before != "" {
			parts = append(parts, part{literal: []byte(before)})
		}
		f, err := parseField(strings.TrimSpace(inside))
		if err != nil {
			return nil, err
		}
		t.fields++
		f.field = uint64(t.fields)
		parts, text = append(parts, f), after
	}
	return parts, nil
}

func parseField(text string) (part, error) {
	name, rest, has := strings.Cut(text, ":")
	kinds := map[string]kind{"n": number, "user": user, "uuid": uuid, "rand": random}
	f := part{kind: kinds[name]}
	bad := func(what string) (part, error) {
		return f, fmt.Errorf("%w: {{%s}}: %s; --literal leaves braces alone", ErrRequest, text, what)
	}
	switch f.kind {
	case number, user:
		if has {
			digits, err := strconv.ParseUint(rest, 10, 8)
			if err != nil || digits < 1 || digits > 19 {
				return bad("give 1 to 19 digits")
			}
			f.digits = int(digits)
		}
	case uuid:
		if has {
			return bad("it takes nothing")
		}
	case random:
		low, high, _ := strings.Cut(rest, ":")
		from, err1 := strconv.ParseUint(low, 10, 63)
		to, err2 := strconv.ParseUint(high, 10, 63)
		if err1 != nil || err2 != nil || from > to {
			return bad("give the least and the greatest, such as {{rand:1:100}}")
		}
		f.low, f.span = from, to-from
	default:
		return bad("known are n, user, uuid and rand:LO:HI")
	}
	return f, nil
}

// value is a numeric field's.
func (t *Template) value(p *part, n, u uint64) uint64 {
	switch p.kind {
	case number:
		return n
	case user:
		return u
	}
	hi, _ := bits.Mul64(t.draw(p, n), p.span+1)
	return p.low + hi
}

// width is how many bytes a field takes; 0 for a literal.
func (t *Template) width(p *part, n, u uint64) int {
	switch p.kind {
	case literal:
		return 0
	case uuid:
		return 36
	}
	return max(p.digits, decimals(t.value(p, n, u)))
}

// decimals is how many digits v has.
func decimals(v uint64) int {
	n := 1
	for ; v >= 10; v /= 10 {
		n++
	}
	return n
}

func (t *Template) appendParts(dst []byte, parts []part, n, u uint64) []byte {
	for i := range parts {
		switch p := &parts[i]; p.kind {
		case literal:
			dst = append(dst, p.literal...)
		case uuid:
			dst = appendUUID(dst, t.draw(p, n), t.draw(p, ^n))
		default:
			v := t.value(p, n, u)
			for zeros := p.digits - decimals(v); zeros > 0; zeros-- {
				dst = append(dst, '0')
			}
			dst = strconv.AppendUint(dst, v, 10)
		}
	}
	return dst
}

// draw is a field's 64 random bits in request n.
func (t *Template) draw(p *part, n uint64) uint64 {
	return mix(mix(mix(t.seed)^p.field) ^ n)
}

// mix is the finalizer of SplitMix64: a bijection that scatters its input.
func mix(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// appendUUID writes a version 4 UUID.
func appendUUID(dst []byte, a, b uint64) []byte {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], a&^0xf000|0x4000)
	binary.BigEndian.PutUint64(raw[8:], b&^(3<<62)|1<<63)
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, raw[[...]int{0, 4, 6, 8, 10}[i]:end])
	}
	return dst
}

// permutation draws the order in which users take turns: i becomes
// step×i+shift, which meets each user once as step shares no factor with their
// number.
func permutation(users, seed uint64) (step, shift uint64) {
	if users == 0 {
		return 1, 0
	}
	for step = mix(seed) % users; gcd(step, users) != 1; step++ {
		step %= users
	}
	return step, mix(seed^users) % users
}

func permute(i, users, step, shift uint64) uint64 {
	hi, lo := bits.Mul64(i, step)
	lo, carry := bits.Add64(lo, shift, 0)
	return bits.Rem64(hi+carry, lo, users)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
