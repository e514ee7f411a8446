package access

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

// A client that sends a body a thousand times the limit reads why it was cut
// off: the connection is not reset under it.
func TestABodyOfAMegabyteIsAnswered(t *testing.T) {
	for name, head := range map[string]string{
		"with its length": "POST /v1/seckill/orders HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n",
		"chunked":         "POST /v1/seckill/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n",
		"to another path": "PUT /v1/other HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			sub := newHeld()
			_, addr := start(t, Config{}, sold{}, sub)
			c := dial(t, addr)
			c.send(t, head)
			body := strings.Repeat("x", 64<<10)
			for range 16 {
				c.send(t, body)
			}
			_, a, resp := c.answer(t)
			if a.Code != seckill.CodeInvalidRequest && a.Code != seckill.CodeNotFound || !resp.Close {
				t.Errorf("answered %+v, close %v", a, resp.Close)
			}
			if n, err := io.Copy(io.Discard, c.r); n != 0 || err != nil {
				t.Errorf("then %d bytes, %v; want the end", n, err)
			}
			if len(sub.tickets) > 0 {
				t.Error("something was submitted")
			}
		})
	}
}

// A client that goes on sending after it was cut off does not hold the
// connection.
func TestAClientThatNeverStopsIsLeft(t *testing.T) {
	s, addr := start(t, Config{}, sold{}, newHeld())
	c := dial(t, addr)
	c.send(t, "nonsense\r\n\r\n")
	junk := []byte(strings.Repeat("x", 64<<10))
	for {
		if _, err := c.Write(junk); err != nil {
			break // reset
		}
	}
	ended(t, s)
}

func TestHEADIsAnsweredWithoutABody(t *testing.T) {
	_, addr := start(t, Config{}, sold{}, newHeld())
	for _, path := range []string{Path, DocumentPath, "/"} {
		c := dial(t, addr)
		c.send(t, "HEAD "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		text, err := io.ReadAll(c.r)
		if err != nil || !strings.HasSuffix(string(text), "\r\n\r\n") {
			t.Errorf("HEAD %s: %q, %v", path, text, err)
		}
	}
}

// R7.4.2: keys rotate: what an old key signed is good while the key is
// configured, and no longer.
func TestTokensOfAnOldKey(t *testing.T) {
	old := seckill.TokenKey{ID: "k0", Secret: []byte("fedcba9876543210fedcba9876543210")}
	codec, err := seckill.NewTokenCodec(old)
	if err != nil {
		t.Fatal(err)
	}
	order := post("Authorization: Bearer "+string(codec.AppendSigned(nil, 1, 7, anHour))+"\r\n",
		`{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`)
	for rule, c := range map[string]struct {
		keys []seckill.TokenKey
		want seckill.Code
	}{
		"rotating":                    {[]seckill.TokenKey{key, old}, seckill.CodeSoldOut},
		"rotated out":                 {[]seckill.TokenKey{key}, seckill.CodeUnauthenticated},
		"another secret under its id": {[]seckill.TokenKey{{ID: old.ID, Secret: key.Secret}}, seckill.CodeUnauthenticated},
	} {
		_, addr := startParams(t, Params{Keys: c.keys, Gate: sold{1: true}, Submit: newHeld()})
		cl := dial(t, addr)
		cl.send(t, order)
		if _, a, _ := cl.answer(t); a.Code != c.want {
			t.Errorf("%s: answered %+v, want %s", rule, a, c.want)
		}
	}
}

// The process clock decides when a token has expired, to the second.
func TestATokenExpiresByTheProcessClock(t *testing.T) {
	expires := time.Date(2026, 11, 11, 0, 10, 0, 0, time.UTC)
	for rule, c := range map[string]struct {
		now  time.Time
		want seckill.Code
	}{
		"a second before": {expires.Add(-time.Nanosecond), seckill.CodeSoldOut},
		"at its expiry":   {expires, seckill.CodeUnauthenticated},
	} {
		_, addr := startParams(t, Params{Gate: sold{1: true}, Submit: newHeld(), Now: func() time.Time { return c.now }})
		cl := dial(t, addr)
		cl.send(t, post(bearerOf(1, 7, expires.Unix()), `{"activity_id":7,"sku_id":8,"request_id":"r","quantity":1}`))
		if _, a, _ := cl.answer(t); a.Code != c.want {
			t.Errorf("%s: answered %+v, want %s", rule, a, c.want)
		}
	}
}

// selfSigned is a certificate for 127.0.0.1 and a pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := selfSigned(t)
	sub := newHeld()
	s, err := New(Params{Config: Config{RequestTimeout: 200 * time.Millisecond}, Keys: []seckill.TokenKey{key}, Gate: sold{2: true}, Submit: sub,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{cert}})) }()
	t.Cleanup(func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Log(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	nc, err := tls.Dial("tcp", plain.Addr().String(), &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, plain.Addr().String()) // says nothing: its handshake is cut off
	secure := &client{nc, bufio.NewReader(nc)}
	defer nc.Close()
	secure.send(t, orderOf(1, "parked")+orderOf(2, "refused"))
	sub.next(t).queued()
	for _, want := range []string{"parked", "refused"} {
		if _, a, _ := secure.answer(t); a.RequestID != want {
			t.Errorf("answered %+v, want %s", a, want)
		}
	}
	if _, err := c.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a client that says nothing reads %v, want the end", err)
	}
	over := dial(t, plain.Addr().String())
	over.send(t, orderOf(1, "plain"))
	if text, _ := io.ReadAll(over.r); strings.Contains(string(text), "QUEUED") {
		t.Errorf("plain HTTP is answered %q", text)
	}
}
