package seckill

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
)

// An eligibility token says that a user may take part in an activity until a
// moment. On the wire: KID.USER.ACTIVITY.EXPIRY.SIGNATURE, the numbers
// decimal, the expiry in Unix seconds, the signature HMAC-SHA256 over
// everything before its dot, base64url without padding.
type EligibilityToken struct {
	KeyID      string
	UserID     int64
	ActivityID int64
	ExpiresAt  int64 // Unix seconds; valid while now < ExpiresAt
}

// Errors of Verify; the edge answers each as UNAUTHENTICATED.
var (
	ErrTokenMalformed  = errors.New("token is malformed")
	ErrTokenUnknownKey = errors.New("token is signed with an unknown key")
	ErrTokenForged     = errors.New("token signature does not match")
	ErrTokenExpired    = errors.New("token has expired")
)

const tokenSignatureBytes = 43 // base64url of 32 bytes, unpadded

// TokenSecretMinBytes is the shortest secret a key may have.
const TokenSecretMinBytes = 16

// TokenKey is one signing key. ID has 1 to 16 letters or digits.
type TokenKey struct {
	ID     string
	Secret []byte
}

func (k TokenKey) check() error {
	if len(k.ID) < 1 || len(k.ID) > 16 {
		return fmt.Errorf("token key id %q: must have 1 to 16 characters", k.ID)
	}
	for i := 0; i < len(k.ID); i++ {
		if c := k.ID[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return fmt.Errorf("token key id %q: must consist of letters and digits", k.ID)
		}
	}
	if len(k.Secret) < TokenSecretMinBytes {
		return fmt.Errorf("token key %q: secret must have at least %d bytes", k.ID, TokenSecretMinBytes)
	}
	return nil
}

// TokenCodec signs and verifies tokens with reused hashers, without
// allocating. Not safe for concurrent use: give each goroutine its own.
type TokenCodec struct {
	keys []TokenKey
	macs []hash.Hash
	sum  [sha256.Size]byte
	sig  [tokenSignatureBytes]byte
}

// NewTokenCodec returns a codec that signs with the first key and verifies
// with any of them (key rotation).
func NewTokenCodec(keys ...TokenKey) (*TokenCodec, error) {
	if len(keys) == 0 {
		return nil, errors.New("token codec: no key")
	}
	c := &TokenCodec{keys: keys}
	for i, k := range keys {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("token codec: %w", err)
		}
		for _, other := range keys[:i] {
			if other.ID == k.ID {
				return nil, fmt.Errorf("token codec: key id %q appears twice", k.ID)
			}
		}
		c.macs = append(c.macs, hmac.New(sha256.New, k.Secret))
	}
	return c, nil
}

// AppendSigned appends the token for user and activity, signed with the
// first key, to dst.
func (c *TokenCodec) AppendSigned(dst []byte, userID, activityID, expiresAt int64) []byte {
	start := len(dst)
	dst = append(dst, c.keys[0].ID...)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, userID, 10)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, activityID, 10)
	dst = append(dst, '.')
	dst = strconv.AppendInt(dst, expiresAt, 10)
	c.sign(0, dst[start:])
	dst = append(dst, '.')
	return append(dst, c.sig[:]...)
}

// Verify reads a token and checks its signature, then its expiry against
// now (Unix seconds). KeyID is not filled in, to stay free of allocation.
func (c *TokenCodec) Verify(token []byte, now int64) (EligibilityToken, error) {
	var t EligibilityToken
	if len(token) > 128 || len(token) < tokenSignatureBytes+8 {
		return t, ErrTokenMalformed
	}
	signed := token[:len(token)-tokenSignatureBytes-1]
	if token[len(signed)] != '.' {
		return t, ErrTokenMalformed
	}
	kid, rest, ok := bytes.Cut(signed, dot)
	if !ok {
		return t, ErrTokenMalformed
	}
	user, rest, ok := bytes.Cut(rest, dot)
	if !ok {
		return t, ErrTokenMalformed
	}
	activity, expiry, ok := bytes.Cut(rest, dot)
	if !ok {
		return t, ErrTokenMalformed
	}
	key := -1
	for i := range c.keys {
		if c.keys[i].ID == string(kid) {
			key = i
		}
	}
	if key < 0 {
		return t, ErrTokenUnknownKey
	}
	c.sign(key, signed)
	if subtle.ConstantTimeCompare(c.sig[:], token[len(signed)+1:]) != 1 {
		return t, ErrTokenForged
	}
	var good [3]bool
	t.UserID, good[0] = parseDecimal(user)
	t.ActivityID, good[1] = parseDecimal(activity)
	t.ExpiresAt, good[2] = parseDecimal(expiry)
	if good != [3]bool{true, true, true} {
		return EligibilityToken{}, ErrTokenMalformed
	}
	if now >= t.ExpiresAt {
		return EligibilityToken{}, ErrTokenExpired
	}
	return t, nil
}

var dot = []byte{'.'}

func (c *TokenCodec) sign(key int, signed []byte) {
	mac := c.macs[key]
	mac.Reset()
	mac.Write(signed)
	base64.RawURLEncoding.Encode(c.sig[:], mac.Sum(c.sum[:0]))
}

// parseDecimal reads a canonical positive decimal below 2^63: no sign, no
// leading zero.
func parseDecimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 || b[0] == '0' {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= 1<<63-1
}
