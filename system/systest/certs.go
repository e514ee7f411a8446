package systest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority vouches for the servers of one test.
type Authority struct {
	CA   string // PEM file
	Cert string // PEM files of a certificate for 127.0.0.1, for both sides
	Key  string
}

// NewAuthority makes an authority and one certificate.
func NewAuthority(t testing.TB) Authority {
	t.Helper()
	dir := t.TempDir()
	a := Authority{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test server"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	rootKey, leafKey := newKey(t), newKey(t)
	for file, made := range map[string]func() ([]byte, error){
		a.CA: func() ([]byte, error) {
			return x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
		},
		a.Cert: func() ([]byte, error) {
			return x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
		},
	} {
		der, err := made()
		if err != nil {
			t.Fatal(err)
		}
		writePEM(t, file, "CERTIFICATE", der)
	}
	der, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.Key, "PRIVATE KEY", der)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
