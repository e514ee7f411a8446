package seckill

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func key(id string) TokenKey { return TokenKey{ID: id, Secret: []byte("secret of key number " + id)} }

func codec(t testing.TB, keys ...TokenKey) *TokenCodec {
	t.Helper()
	c, err := NewTokenCodec(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTokenKeepsItsFormat(t *testing.T) { // R7.4.2
	got := codec(t, key("k1")).AppendSigned(nil, 1000, 7, 1772357400)
	const want = "k1.1000.7.1772357400.3MFKaoDsrWE39fOt3XXz21GMsYTlwSW4s4eNoDk81po"
	if string(got) != want {
		t.Errorf("token is now %s\nwant %s", got, want)
	}
}

func TestSignedTokensVerifyUntilTheyExpire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := NewTokenCodec(key("a"), key("b2"))
		if err != nil {
			t.Fatal(err)
		}
		id := rapid.Int64Range(1, 1<<63-1)
		want := EligibilityToken{UserID: id.Draw(t, "user"), ActivityID: id.Draw(t, "activity"), ExpiresAt: id.Draw(t, "expiry")}
		token := c.AppendSigned([]byte("x"), want.UserID, want.ActivityID, want.ExpiresAt)[1:]
		if got, err := c.Verify(token, want.ExpiresAt-1); err != nil || got != want {
			t.Fatalf("%s: %+v, %v", token, got, err)
		}
		if got, err := c.Verify(token, want.ExpiresAt); !errors.Is(err, ErrTokenExpired) || got != (EligibilityToken{}) {
			t.Fatalf("%s at its expiry: %+v, %v", token, got, err)
		}
	})
}

func TestAnyChangedByteSpoilsAToken(t *testing.T) {
	c := codec(t, key("k1"))
	token := c.AppendSigned(nil, 1000, 7, 2000)
	for i := range token {
		for _, with := range []byte{'0', '9', 'A', '.', '-', 0} {
			changed := append([]byte(nil), token...)
			if changed[i] == with {
				continue
			}
			changed[i] = with
			if got, err := c.Verify(changed, 1000); err == nil {
				t.Fatalf("%q accepted as %+v", changed, got)
			}
		}
	}
}

func TestTokenErrorsSayWhy(t *testing.T) {
	c := codec(t, key("k1"))
	signedBy := func(k TokenKey, user, activity, expiry int64) []byte {
		return codec(t, k).AppendSigned(nil, user, activity, expiry)
	}
	good := signedBy(key("k1"), 1, 7, 2000)
	for name, tc := range map[string]struct {
		token []byte
		want  error
	}{
		"empty":                 {nil, ErrTokenMalformed},
		"cut":                   {good[:len(good)-1], ErrTokenMalformed},
		"too long":              {make([]byte, 129), ErrTokenMalformed},
		"three parts":           {[]byte("k1.1.7." + string(good[len(good)-43:])), ErrTokenMalformed},
		"unknown key":           {signedBy(key("k9"), 1, 7, 2000), ErrTokenUnknownKey},
		"another secret":        {signedBy(TokenKey{"k1", []byte("another secret, long enough")}, 1, 7, 2000), ErrTokenForged},
		"another user's":        {append([]byte("k1.2"), good[4:]...), ErrTokenForged},
		"expired":               {signedBy(key("k1"), 1, 7, 999), ErrTokenExpired},
		"signed, user negative": {signedBy(key("k1"), -1, 7, 2000), ErrTokenMalformed},
		"signed, user zero":     {signedBy(key("k1"), 0, 7, 2000), ErrTokenMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := c.Verify(tc.token, 1000); !errors.Is(err, tc.want) || got != (EligibilityToken{}) {
				t.Errorf("%+v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestKeysRotate(t *testing.T) {
	before, during, after := codec(t, key("old")), codec(t, key("new"), key("old")), codec(t, key("new"))
	old, fresh := before.AppendSigned(nil, 1, 7, 2000), during.AppendSigned(nil, 1, 7, 2000)
	for name, tc := range map[string]struct {
		codec *TokenCodec
		token []byte
		want  error
	}{
		"old token during": {during, old, nil},
		"new token during": {during, fresh, nil},
		"new token after":  {after, fresh, nil},
		"old token after":  {after, old, ErrTokenUnknownKey},
	} {
		if _, err := tc.codec.Verify(tc.token, 1000); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewTokenCodecRefusesBadKeys(t *testing.T) {
	for name, keys := range map[string][]TokenKey{
		"none": nil, "no id": {key("")}, "a dot in the id": {key("a.b")}, "long id": {key("aaaaaaaaaaaaaaaaa")},
		"short secret": {{"k", []byte("short")}}, "an id twice": {key("k"), key("k")},
	} {
		if _, err := NewTokenCodec(keys...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTokensCostNoAllocation(t *testing.T) {
	c := codec(t, key("k1"))
	token := c.AppendSigned(nil, 1, 7, 2000)
	buf := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() {
		buf = c.AppendSigned(buf[:0], 1, 7, 2000)
		if _, err := c.Verify(token, 1000); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzTokenVerify(f *testing.F) {
	c := codec(f, key("k1"))
	good := c.AppendSigned(nil, 12, 7, 2000)
	f.Add(good)
	f.Add([]byte("k1.1.7.2000." + string(good[len(good)-43:])))
	f.Fuzz(func(t *testing.T, token []byte) {
		got, err := c.Verify(token, 1000)
		if err != nil {
			return
		}
		// Whatever verifies is exactly what was signed.
		if again := c.AppendSigned(nil, got.UserID, got.ActivityID, got.ExpiresAt); string(again) != string(token) {
			t.Fatalf("%q verifies as %+v, which signs to %q", token, got, fmt.Sprint(string(again)))
		}
	})
}
