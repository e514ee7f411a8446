package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/hotsku/hotsku/system/admission"
)

// EdgeTLS are the PEM files with which access and orders serve TLS; both
// empty: they serve plain HTTP, for a gateway on a private network.
type EdgeTLS struct {
	Cert string // certificate chain
	Key  string // private key
}

// config is nil if TLS is off.
func (t EdgeTLS) config() (*tls.Config, error) {
	switch {
	case t == EdgeTLS{}:
		return nil, nil
	case t.Cert == "" || t.Key == "":
		return nil, errors.New("--tls-cert and --tls-key belong together")
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s, key %s: %w", t.Cert, t.Key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// listen opens the address on which the role serves its clients.
func (a *App) listen(addr string) (net.Listener, error) {
	secure, err := a.cfg.TLS.config()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: choose another with --listen", addr, err)
	}
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	return ln, nil
}

func needsTLS(c *Config) error {
	_, err := c.TLS.config()
	return err
}

func needsAccess(c *Config) error {
	if err := c.Access.Validate(); err != nil {
		return err
	}
	if !c.Access.Without.Has(admission.StageToken) {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--without token on %q: anyone could be any user; it is for measuring, on a loopback address such as 127.0.0.1:8080", c.Listen)
	}
	return nil
}
