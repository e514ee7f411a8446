package seckill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// RequestIDMaxBytes bounds a request_id; with the character set below it
// keeps Redis keys short and answers free of escapes.
const RequestIDMaxBytes = 64

// SubmitCommand is one user's wish to buy one unit (specification 8.5). The
// user comes from the eligibility token, never from the body.
type SubmitCommand struct {
	ActivityID int64
	SKUID      int64
	UserID     int64
	RequestID  string
	Quantity   int64
	// Traceparent is the request's W3C trace context, empty if there is none.
	// It is no part of the payload.
	Traceparent string
}

// FieldError says which field of a request is wrong and why. The edge
// answers it as INVALID_REQUEST with field and reason.
type FieldError struct {
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Validate checks the command before anything else is done with it (R9.1.1).
// The error is a *FieldError.
func (c *SubmitCommand) Validate() error {
	switch {
	case c.ActivityID <= 0:
		return &FieldError{"activity_id", "must be a positive integer"}
	case c.SKUID <= 0:
		return &FieldError{"sku_id", "must be a positive integer"}
	case c.Quantity != 1:
		return &FieldError{"quantity", "must be 1"}
	}
	return ValidateRequestID(c.RequestID)
}

// ValidateRequestID checks length (1 to RequestIDMaxBytes) and characters
// (letters, digits, '_', '-', '.'). The error is a *FieldError.
func ValidateRequestID(id string) error {
	if id == "" {
		return &FieldError{"request_id", "is required"}
	}
	if len(id) > RequestIDMaxBytes {
		return &FieldError{"request_id", fmt.Sprintf("must be at most %d bytes", RequestIDMaxBytes)}
	}
	for i := 0; i < len(id); i++ {
		if !requestIDByte(id[i]) {
			return &FieldError{"request_id", "must consist of letters, digits, '_', '-' and '.'"}
		}
	}
	return nil
}

func requestIDByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// PayloadHash is the digest by which a repeated request_id is recognised as
// the same request (R7.9.2): SHA-256 over activity, SKU, user and quantity,
// as 64 hex digits. Redis stores it bare (a longer field doubles the memory
// of a reservation); the message carries it with the prefix "sha256:".
func (c *SubmitCommand) PayloadHash() string {
	var buf [96]byte
	b := strconv.AppendInt(buf[:0], c.ActivityID, 10)
	b = append(b, '|')
	b = strconv.AppendInt(b, c.SKUID, 10)
	b = append(b, '|')
	b = strconv.AppendInt(b, c.UserID, 10)
	b = append(b, '|')
	b = strconv.AppendInt(b, c.Quantity, 10)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// PayloadHashPrefix stands before the digest in messages.
const PayloadHashPrefix = "sha256:"
