// Package mq is the RocketMQ side: a producer that never retries by itself,
// a consumer that acknowledges only what was committed, and topic creation.
// The broker buffers and redelivers; it is no authority on anything
// (specification 7.5): a confirmed send is not an order, and an unconfirmed
// one is unknown, not failed.
//
// What rocketmq-client-go v2 needs to be told is noted where it is told.
//
// Imports allowed: system/seckill, system/pause, system/mq/remoting, rocketmq-client-go.
package mq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"github.com/hotsku/hotsku/system/mq/remoting"
)

// TopicQueues is how many queues each topic gets: creates spread over them
// by reservation, so that one SKU is never one queue (R8.3.6).
const TopicQueues = 8

// Config says where the name server is.
type Config struct {
	NameServer string // IP:port; the client library does not resolve names
	AccessKey  string // empty: no authentication
	SecretKey  string
	// TLS encrypts, and does not tell who answers: the client library takes
	// any certificate. It also keeps one setting for all clients of a process.
	TLS bool
	// TopicPrefix stands before every topic and group name. Empty in
	// production; tests use it to have topics of their own.
	TopicPrefix string
}

// Validate checks the addresses.
func (c Config) Validate() error {
	if c.NameServer == "" {
		return errors.New("name server address is empty")
	}
	if _, err := netip.ParseAddrPort(c.NameServer); err != nil {
		return fmt.Errorf("name server %q: must be IP:port", c.NameServer)
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return errors.New("access key and secret key belong together")
	}
	return nil
}

// Security is how every client reaches the servers.
func (c Config) Security() remoting.Security {
	return remoting.Security{TLS: c.TLS, AccessKey: c.AccessKey, SecretKey: c.SecretKey}
}

// credentials are the library's, empty without an access key.
func (c Config) credentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: c.AccessKey, SecretKey: c.SecretKey}
}

// DeadLetterPrefix begins the topic in which the broker keeps what a group
// could not decide in all its tries.
const DeadLetterPrefix = "%DLQ%"

// DeadLetterTopic names the dead-letter topic of a group, without prefix.
func DeadLetterTopic(group string) string { return DeadLetterPrefix + group }

func (c Config) topic(name string) string {
	if group, ok := strings.CutPrefix(name, DeadLetterPrefix); ok {
		return DeadLetterPrefix + c.group(group)
	}
	return c.TopicPrefix + name
}

func (c Config) group(name string) string       { return c.TopicPrefix + name }
func (c Config) retryTopic(group string) string { return "%RETRY%" + c.group(group) }

// instances numbers the clients of this process: the library shares a
// connection between clients of one name, and so their shutdown.
var instances atomic.Int64

func instanceName(kind string, pid int) string {
	return kind + "-" + strconv.Itoa(pid) + "-" + strconv.FormatInt(instances.Add(1), 10)
}

// UseLogger sends the client library's own log to log, for debugging: it
// would write to standard output otherwise. What a caller must know comes
// back as an error, once; the rest the library tries again by itself. Call it
// once, at the edge; the library keeps one logger a process.
func UseLogger(log *slog.Logger) { rlog.SetLogger(&libraryLog{log}) }

type libraryLog struct{ log *slog.Logger }

func (l *libraryLog) Debug(string, map[string]any)              {}
func (l *libraryLog) Info(string, map[string]any)               {}
func (l *libraryLog) Warning(msg string, fields map[string]any) { l.debug(msg, fields) }
func (l *libraryLog) Error(msg string, fields map[string]any)   { l.debug(msg, fields) }
func (l *libraryLog) debug(msg string, fields map[string]any) {
	if !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	l.log.Debug("rocketmq client: "+msg, "fields", fmt.Sprint(fields))
}
func (l *libraryLog) Fatal(msg string, fields map[string]any) {
	l.log.Error("rocketmq client: "+msg, "fields", fmt.Sprint(fields))
}
func (l *libraryLog) Level(string)            {}
func (l *libraryLog) OutputPath(string) error { return nil }
