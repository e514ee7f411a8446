package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/hotsku/hotsku/stack/proc"
)

func TestTwoStacksSideBySideEachGoWithoutATrace(t *testing.T) {
	needServers(t)
	t.Parallel()
	base := testBase(t)
	var stacks [2]*Stack
	g, ctx := errgroup.WithContext(deadline(t))
	for i, o := range []Options{{Name: "one"}, {BrokerBehindProxy: true}} {
		o.Base = base
		g.Go(func() (err error) {
			stacks[i], err = Up(ctx, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, s := range stacks {
		for _, server := range s.Servers() {
			if !accepts(server.Addr()) {
				t.Errorf("%s of %s does not accept connections on %s", server.Name(), s.Name(), server.Addr())
			}
		}
		if !accepts(strings.TrimSuffix(strings.TrimPrefix(s.Addresses().BrokerMetrics, "http://"), "/metrics")) {
			t.Errorf("%s: no broker metrics at %s", s.Name(), s.Addresses().BrokerMetrics)
		}
	}
	if overlaps(stacks[0].lock.Ports, []Ports{stacks[1].lock.Ports}) {
		t.Errorf("ports overlap: %+v %+v", stacks[0].lock.Ports, stacks[1].lock.Ports)
	}
	t.Run("a proxy can take the address the broker tells its clients", func(t *testing.T) {
		a := stacks[1].Addresses()
		l, err := net.Listen("tcp", a.Broker)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if a.BrokerDirect == a.Broker || stacks[1].Broker.Addr() != a.BrokerDirect {
			t.Errorf("broker %s, direct %s, server %s", a.Broker, a.BrokerDirect, stacks[1].Broker.Addr())
		}
	})
	t.Run("a name is taken once", func(t *testing.T) {
		if _, err := Up(deadline(t), Options{Base: base, Name: "one"}); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an owned stack is not another's to remove", func(t *testing.T) {
		if err := RemoveKept(deadline(t), base, "one"); err == nil || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Errorf("got %v, want an error naming the owner's pid", err)
		}
	})
	down(t, stacks[0])
	if !accepts(stacks[1].Redis.Addr()) {
		t.Error("the other stack went down too")
	}
	down(t, stacks[1])
	for _, s := range stacks {
		wantNothingLeft(t, base, s.lock)
		down(t, s) // does nothing
		if err := s.Redis.Start(deadline(t)); err == nil {
			t.Error("a server of a stack that is down can be started")
		}
	}
	wantEmpty(t, base)
}

// store is what a test writes to a server and finds again.
type store struct {
	server Server
	write  func(context.Context, string) error
	read   func(context.Context) (string, error)
}

func stores(s *Stack) []store {
	a := s.Addresses()
	return []store{
		{s.Redis,
			func(ctx context.Context, v string) error {
				_, err := redisCommand(ctx, a.Redis, "SET k "+v)
				return err
			},
			func(ctx context.Context) (string, error) { return redisCommand(ctx, a.Redis, "GET k") }},
		{s.Postgres,
			func(ctx context.Context, v string) error {
				return withPostgres(ctx, a.Postgres, func(c *pgx.Conn) error {
					_, err := c.Exec(ctx, "CREATE TABLE IF NOT EXISTS kept (v text)")
					if err == nil {
						_, err = c.Exec(ctx, "INSERT INTO kept VALUES ($1)", v)
					}
					return err
				})
			},
			func(ctx context.Context) (v string, err error) {
				err = withPostgres(ctx, a.Postgres, func(c *pgx.Conn) error {
					return c.QueryRow(ctx, "SELECT v FROM kept WHERE pg_xact_commit_timestamp(xmin) IS NOT NULL").Scan(&v)
				})
				return v, err
			}},
		{s.Broker,
			func(ctx context.Context, v string) error { return sendMessage(ctx, a.Broker, v) },
			func(ctx context.Context) (string, error) { return pullMessage(ctx, a.Broker) }},
	}
}

func TestServersOfAStack(t *testing.T) {
	t.Parallel()
	s := up(t, Options{Base: testBase(t)})
	t.Run("have the settings that durability rests on", func(t *testing.T) { testSettings(t, s) })
	t.Run("answer only after resume when paused", func(t *testing.T) { testPause(t, s) })
	t.Run("keep their data and port across kill and stop", func(t *testing.T) { testRestart(t, s) })
}

func testRestart(t *testing.T, s *Stack) {
	ctx := deadline(t)
	for _, st := range stores(s) {
		t.Run(st.server.Name(), func(t *testing.T) {
			t.Parallel()
			if err := st.write(ctx, "answered"); err != nil {
				t.Fatal(err)
			}
			for _, end := range []struct {
				name string
				do   func() error
			}{
				{"kill", st.server.Kill},
				{"clean stop", func() error { return st.server.Stop(ctx) }},
			} {
				done := st.server.Done()
				if err := end.do(); err != nil {
					t.Fatalf("%s: %v", end.name, err)
				}
				select {
				case <-done:
				default:
					t.Fatalf("%s: Done is not closed", end.name)
				}
				if st.server.PID() != 0 || accepts(st.server.Addr()) {
					t.Fatalf("%s: still there", end.name)
				}
				if err := st.server.Start(ctx); err != nil {
					t.Fatalf("start after %s: %v", end.name, err)
				}
				if got, err := st.read(ctx); err != nil || got != "answered" {
					t.Fatalf("after %s: read %q, %v; want what was written", end.name, got, err)
				}
				if err := st.server.Start(ctx); err == nil {
					t.Errorf("a running server was started again")
				}
			}
		})
	}
}

func testPause(t *testing.T, s *Stack) {
	ctx := deadline(t)
	for _, st := range stores(s) {
		t.Run(st.server.Name(), func(t *testing.T) {
			if err := st.write(ctx, "answered"); err != nil {
				t.Fatal(err)
			}
			if err := st.server.Pause(); err != nil {
				t.Fatal(err)
			}
			answer := make(chan error, 1)
			go func() {
				_, err := st.read(ctx)
				answer <- err
			}()
			// That nothing comes can only be seen for a while; a wrong pause fails, a slow machine does not.
			select {
			case err := <-answer:
				t.Errorf("a paused server answered (%v)", err)
				answer <- err
			case <-time.After(100 * time.Millisecond):
			}
			if err := st.server.Resume(); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; err != nil {
				t.Error(err)
			}
		})
	}
	processes, err := proc.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	if u, err := s.Postgres.(Processed).Usage(processes); err != nil || u.User+u.System == 0 {
		t.Errorf("CPU time of PostgreSQL is %+v, %v", u, err)
	}
}

func testSettings(t *testing.T, s *Stack) {
	ctx := deadline(t)
	err := withPostgres(ctx, s.Addresses().Postgres, func(c *pgx.Conn) error {
		for name, want := range map[string]string{"fsync": "on", "synchronous_commit": "on",
			"full_page_writes": "on", "track_commit_timestamp": "on"} {
			var got string
			if err := c.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
				t.Errorf("PostgreSQL %s is %q, %v; want %q", name, got, err, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always", "save": "",
		"auto-aof-rewrite-percentage": "0", "maxmemory-policy": "noeviction"} {
		if got, err := redisConfig(ctx, s.Addresses().Redis, name); err != nil || got != want {
			t.Errorf("Redis %s is %q, %v; want %q", name, got, err, want)
		}
	}
	_, body, err := callRemoting(ctx, s.Addresses().Broker, 26 /* GET_BROKER_CONFIG */, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"flushDiskType=SYNC_FLUSH", "autoCreateTopicEnable=false", "messageIndexEnable=false"} {
		if !bytes.Contains(body, []byte("\n"+want+"\n")) {
			t.Errorf("broker does not have %s", want)
		}
	}
}

func TestCancelledUpLeavesNothing(t *testing.T) {
	needServers(t)
	for _, at := range []string{RedisName, NameServerName} {
		t.Run("when "+at+" was ready", func(t *testing.T) {
			t.Parallel()
			base := testBase(t)
			ctx, cancel := context.WithCancelCause(deadline(t))
			defer cancel(nil)
			interrupted := errors.New("interrupted")
			var l lock
			_, err := Up(ctx, Options{Base: base, Name: "cancelled", Progress: func(server string, _ time.Duration) {
				if server == at {
					l, _ = readLock(filepath.Join(base, "cancelled"))
					cancel(interrupted)
				}
			}})
			if !errors.Is(err, interrupted) {
				t.Errorf("got %v, want the context's cause", err)
			}
			if len(l.Children) == 0 {
				t.Fatal("no lock was there to read")
			}
			wantNothingLeft(t, base, l)
		})
	}
}

func redisCommand(ctx context.Context, addr, command string) (string, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(hang)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\nQUIT\r\n", command); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\r\n+OK\r\n"), "\r\n")
	if strings.HasPrefix(lines[0], "-") {
		return "", errors.New(lines[0])
	}
	return lines[len(lines)-1], nil
}

func redisConfig(ctx context.Context, addr, name string) (string, error) {
	return redisCommand(ctx, addr, "CONFIG GET "+name)
}

func withPostgres(ctx context.Context, dsn string, f func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close(ctx))
}

const testTopic = "kept"

// sendMessage creates the topic and sends one message to its only queue.
func sendMessage(ctx context.Context, broker, body string) error {
	_, _, err := callRemoting(ctx, broker, 17 /* UPDATE_AND_CREATE_TOPIC */, map[string]string{
		"topic": testTopic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}, nil)
	if err != nil {
		return err
	}
	_, _, err = callRemoting(ctx, broker, 10 /* SEND_MESSAGE */, map[string]string{
		"producerGroup": "test", "topic": testTopic, "defaultTopic": "TBW102", "defaultTopicQueueNums": "1",
		"queueId": "0", "sysFlag": "0", "bornTimestamp": "0", "flag": "0", "properties": "",
		"reconsumeTimes": "0", "unitMode": "false", "batch": "false"}, []byte(body))
	return err
}

// pullMessage returns the first message's body, which is near the end of what the broker answers.
func pullMessage(ctx context.Context, broker string) (string, error) {
	_, body, err := callRemoting(ctx, broker, 11 /* PULL_MESSAGE */, map[string]string{
		"consumerGroup": "test", "topic": testTopic, "queueId": "0", "queueOffset": "0", "maxMsgNums": "1",
		"sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*",
		"subVersion": "0", "expressionType": "TAG"}, nil)
	if err != nil {
		return "", err
	}
	if i := bytes.Index(body, []byte("answered")); i >= 0 {
		return "answered", nil
	}
	return "", fmt.Errorf("no such message in %q", body)
}
