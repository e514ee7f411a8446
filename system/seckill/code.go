package seckill

import "fmt"

// Code is the outcome named in every answer of the edge (specification 7.9,
// 8.5, 9.1). Its number is stable: histories store it as one byte.
type Code uint8

// The codes of the contract, with their HTTP status beside them.
const (
	CodeNone                Code = 0  // no parsed answer
	CodeQueued              Code = 1  // 202 reserved, and the broker confirmed the message
	CodeQueuedPending       Code = 2  // 202 reserved; the send's outcome is unknown, the scanner owns it
	CodeOrderCreated        Code = 3  // 201 synchronous schemes only
	CodeSoldOut             Code = 4  // 410 no unit was reservable when it was judged; not stored
	CodeDuplicateUser       Code = 5  // 409 the user holds or held a reservation here
	CodeIdempotencyConflict Code = 6  // 422 the request_id is stored with another payload
	CodeActivityInvalid     Code = 7  // 403 not started, ended, closed or unknown
	CodeRateLimited         Code = 8  // 429 nothing was changed
	CodeUnauthenticated     Code = 9  // 401 token missing, malformed, forged or expired
	CodeForbidden           Code = 10 // 403 a good token for something else
	CodeInvalidRequest      Code = 11 // 400 a field is wrong; field and reason say which and why
	CodeUnavailable         Code = 12 // 503 fail closed; reason says what is down
	CodeProcessing          Code = 13 // 200 query: not known yet, or not decided yet
	CodeNotAccepted         Code = 14 // 200 query: the activity is settled and this never was accepted
	CodeFound               Code = 15 // 200 query: status (and order_id) say what became of it
	CodeNotFound            Code = 16 // 404 no such endpoint
	CodeOrderEnded          Code = 17 // 409 pay, cancel: the order ended otherwise before; status says how
	CodeMethodNotAllowed    Code = 18 // 405 the endpoint exists, for other methods
)

// codeInfo is indexed by Code.
var codeInfo = [...]struct {
	name string
	http int
}{
	CodeNone:                {"", 0},
	CodeQueued:              {"QUEUED", 202},
	CodeQueuedPending:       {"QUEUED_PENDING_MESSAGE", 202},
	CodeOrderCreated:        {"ORDER_CREATED", 201},
	CodeSoldOut:             {"SOLD_OUT", 410},
	CodeDuplicateUser:       {"DUPLICATE_USER", 409},
	CodeIdempotencyConflict: {"IDEMPOTENCY_CONFLICT", 422},
	CodeActivityInvalid:     {"ACTIVITY_INVALID", 403},
	CodeRateLimited:         {"RATE_LIMITED", 429},
	CodeUnauthenticated:     {"UNAUTHENTICATED", 401},
	CodeForbidden:           {"FORBIDDEN", 403},
	CodeInvalidRequest:      {"INVALID_REQUEST", 400},
	CodeUnavailable:         {"UNAVAILABLE", 503},
	CodeProcessing:          {"PROCESSING", 200},
	CodeNotAccepted:         {"NOT_ACCEPTED", 200},
	CodeFound:               {"FOUND", 200},
	CodeNotFound:            {"NOT_FOUND", 404},
	CodeOrderEnded:          {"ORDER_ENDED", 409},
	CodeMethodNotAllowed:    {"METHOD_NOT_ALLOWED", 405},
}

// Codes lists every code but CodeNone, in numeric order.
func Codes() []Code {
	out := make([]Code, 0, len(codeInfo)-1)
	for c := 1; c < len(codeInfo); c++ {
		out = append(out, Code(c))
	}
	return out
}

// String returns the code's name on the wire, "" for CodeNone and
// "Code(n)" for a number that is no code.
func (c Code) String() string {
	if int(c) < len(codeInfo) {
		return codeInfo[c].name
	}
	return fmt.Sprintf("Code(%d)", uint8(c))
}

// HTTPStatus is the status line's number for c; 500 for a number that is no
// code, since answering one is a defect.
func (c Code) HTTPStatus() int {
	if c == CodeNone || int(c) >= len(codeInfo) {
		return 500
	}
	return codeInfo[c].http
}

// Accepted says that a reservation stands behind the answer: from here on
// nothing may be lost (invariant I4).
func (c Code) Accepted() bool {
	return c == CodeQueued || c == CodeQueuedPending || c == CodeOrderCreated
}

// Decision says that the edge judged the request, as opposed to turning it
// away unjudged (RATE_LIMITED, UNAVAILABLE) or not answering.
func (c Code) Decision() bool {
	return c != CodeNone && c != CodeRateLimited && c != CodeUnavailable
}

// ParseCode finds the code with that name on the wire.
func ParseCode(name string) (Code, bool) {
	if name == "" {
		return CodeNone, false
	}
	for c, info := range codeInfo {
		if info.name == name {
			return Code(c), true
		}
	}
	return CodeNone, false
}

// MarshalText writes the code's name.
func (c Code) MarshalText() ([]byte, error) {
	if int(c) >= len(codeInfo) {
		return nil, fmt.Errorf("seckill: %d is no code", uint8(c))
	}
	return []byte(codeInfo[c].name), nil
}

// UnmarshalText reads a code's name; an unknown name is an error (R9.1.2).
func (c *Code) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*c = CodeNone
		return nil
	}
	parsed, ok := ParseCode(string(text))
	if !ok {
		return fmt.Errorf("seckill: unknown code %q", text)
	}
	*c = parsed
	return nil
}
