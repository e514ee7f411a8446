package access

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotsku/hotsku/system/admission"
)

// Config bounds the edge. A bound of zero takes ConfigDefault's; limits that
// are zero are off.
type Config struct {
	Connections    int           // at once; one more is closed
	HeadLimitBytes int           // request line and headers; also the read buffer
	BodyLimitBytes int           // request body
	IdleTimeout    time.Duration // between requests
	RequestTimeout time.Duration // from a request's first byte to its last; also of a TLS handshake
	WriteTimeout   time.Duration // one write to a slow reader

	Limits admission.LimitsConfig // requests a second

	// Without are the stages of the funnel that are switched off, to measure
	// what they spare those behind them (10.1). Without the token stage the
	// user is who UserHeader says: never where others can connect.
	Without admission.StageSet
}

// ConfigDefault bounds a connection to a few hundred kilobytes.
var ConfigDefault = Config{Connections: 4096, HeadLimitBytes: 16 << 10, BodyLimitBytes: 4 << 10,
	IdleTimeout: 75 * time.Second, RequestTimeout: 10 * time.Second, WriteTimeout: 5 * time.Second,
	Limits: admission.LimitsDefault}

// Validate checks the bounds and limits.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Connections < 1:
		return fmt.Errorf("connections %d: must be positive", c.Connections)
	case c.HeadLimitBytes < 1<<10 || c.HeadLimitBytes > 1<<20:
		return fmt.Errorf("head limit %d bytes: must be 1024 to 1048576", c.HeadLimitBytes)
	case c.BodyLimitBytes < 256 || c.BodyLimitBytes > 1<<20:
		return fmt.Errorf("body limit %d bytes: must be 256 to 1048576", c.BodyLimitBytes)
	case c.IdleTimeout < 0 || c.RequestTimeout < 0 || c.WriteTimeout < 0:
		return errors.New("idle, request and write timeout must be positive")
	}
	_, err := admission.NewLimits(c.Limits, c.Without)
	return err
}

func (c Config) withDefaults() Config {
	or := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	orTime := func(t *time.Duration, d time.Duration) {
		if *t == 0 {
			*t = d
		}
	}
	d := ConfigDefault
	or(&c.Connections, d.Connections)
	or(&c.HeadLimitBytes, d.HeadLimitBytes)
	or(&c.BodyLimitBytes, d.BodyLimitBytes)
	orTime(&c.IdleTimeout, d.IdleTimeout)
	orTime(&c.RequestTimeout, d.RequestTimeout)
	orTime(&c.WriteTimeout, d.WriteTimeout)
	or(&c.Limits.Slots, d.Limits.Slots)
	return c
}
