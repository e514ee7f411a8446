package reservation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// TLS are PEM files for a Redis that is reached by rediss://. Its certificate
// is always verified, for the host name in the address.
type TLS struct {
	CA   string // who vouches for the server; empty: the machine's own list
	Cert string // with Key: our certificate, where the server wants one
	Key  string
}

// Validate says what is wrong with address, names and files, in one line that
// repeats no password.
func (c Config) Validate() error {
	_, err := c.options()
	return err
}

// redisPortDefault is where an address that is a URL names none.
const redisPortDefault = "6379"

// errRedisAddress repeats nothing: what is no address may be a password.
var errRedisAddress = errors.New("redis address: must be host:port, or redis://host:port or, for TLS, rediss://host:port")

// options is all that the client library is told about the server.
func (c Config) options() (*redis.Options, error) {
	o := &redis.Options{Addr: c.Addr, Username: c.Username, Password: c.Password,
		PoolSize: c.PoolSize, DialTimeout: c.Timeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout,
		MaxRetries:            -1, // 0 would mean 3 and send EVALSHA again
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	}
	secure := false
	if strings.Contains(c.Addr, "://") {
		u, err := url.Parse(c.Addr)
		if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, errRedisAddress
		}
		if u.Path != "" && u.Path != "/" && u.Path != "/0" {
			return nil, errors.New("redis address: only database 0 is used, leave the path out")
		}
		if password, given := u.User.Password(); given && o.Password == "" {
			o.Password = password
		}
		if name := u.User.Username(); o.Username == "" {
			o.Username = name
		}
		port := u.Port()
		if port == "" {
			port = redisPortDefault
		}
		o.Addr, secure = net.JoinHostPort(u.Hostname(), port), u.Scheme == "rediss"
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil || strings.ContainsAny(o.Addr, "@/") {
		return nil, errRedisAddress
	}
	if o.Username != "" && o.Password == "" {
		return nil, errors.New("redis user without a password: give --redis-password")
	}
	if !secure {
		if c.TLS != (TLS{}) {
			return nil, errors.New("--redis-ca, --redis-cert and --redis-key are for TLS: give --redis rediss://host:port")
		}
		return o, nil
	}
	o.TLSConfig, err = c.TLS.config(host)
	return o, err
}

func (t TLS) config(host string) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--redis-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--redis-ca %s: no certificate in it", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("--redis-cert and --redis-key belong together")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("--redis-cert %s, --redis-key %s: %w", t.Cert, t.Key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// advise adds to an error of the first call what its cause may be among the
// options.
func (c Config) advise(err error) error {
	check := ""
	secure := strings.HasPrefix(c.Addr, "rediss://")
	var network *net.OpError
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "WRONGPASS"), redis.HasErrorPrefix(err, "NOAUTH"):
		check = "check --redis-user and --redis-password"
	case redis.HasErrorPrefix(err, "NOPERM"):
		check = "see what --redis-user may do: the keys seckill:*, EVALSHA and SCRIPT, CONFIG GET, INFO"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		check = "check --redis-ca, and the host in --redis"
	case errors.As(err, &network) && network.Op == "remote error": // a TLS alert
		check = "the server refuses our side of TLS: check --redis-cert and --redis-key"
	case secure && (errors.As(err, new(tls.RecordHeaderError)) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)):
		check = "if it speaks no TLS, give --redis redis://host:port" // a Redis without says nothing
	case !secure && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		check = "if it wants TLS, give --redis rediss://host:port"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, check)
}
