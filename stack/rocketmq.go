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
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

// brokerRealHost is where a broker listens when a proxy is to stand before it: clients dial the address
// the broker registers, 127.0.0.1 with the same port, so only the host can differ.
const brokerRealHost = "127.0.0.2"

func (l layout) brokerHost() string {
	if l.proxied {
		return brokerRealHost
	}
	return "127.0.0.1"
}

func (l layout) brokerAddr() string {
	return net.JoinHostPort(l.brokerHost(), strconv.Itoa(l.ports.Broker))
}

func newNameServer(l layout, record recordFunc) *native {
	addr := loopback(l.ports.NameServer)
	return l.java(NameServerName, addr, record, javaServer{
		main: "org.apache.rocketmq.namesrv.NamesrvStartup", template: "rocketmq/namesrv.conf.tmpl",
		// It has nothing hot: the optimizing compiler would only delay the start of all.
		jvm: []string{"-Xms128m", "-Xmx128m", "-XX:TieredStopAtLevel=1"},
		answers: func(ctx context.Context, _ *proc.Process) error {
			_, err := registeredBrokers(ctx, addr)
			return err
		},
	})
}

func newBroker(l layout, record recordFunc) *native {
	addr := l.brokerAddr()
	return l.java(BrokerName, addr, record, javaServer{
		main: "org.apache.rocketmq.broker.BrokerStartup", template: "rocketmq/broker.conf.tmpl",
		jvm: []string{"-Xms512m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m"},
		answers: func(ctx context.Context, p *proc.Process) error {
			return brokerReady(ctx, p, addr, loopback(l.ports.NameServer), loopback(l.ports.Broker))
		},
	})
}

// brokerReady wants what a client needs: the broker says that it started, answers, and the name
// server knows the address that clients will dial.
func brokerReady(ctx context.Context, p *proc.Process, addr, nameServer, registered string) error {
	log, err := p.LogSinceStart()
	if err != nil {
		return err
	}
	defer log.Close()
	said, err := io.ReadAll(io.LimitReader(log, 1<<20))
	if err != nil {
		return err
	}
	if !bytes.Contains(said, []byte("boot success")) {
		return errors.New(`no "boot success" in the log yet`)
	}
	// A connection alone would be the kernel's, of a broker that is frozen.
	if _, _, err := callRemoting(ctx, addr, requestGetBrokerConfig, nil, nil); err != nil {
		return err
	}
	brokers, err := registeredBrokers(ctx, nameServer)
	if err != nil {
		return fmt.Errorf("ask name server %s: %w", nameServer, err)
	}
	if slices.Contains(brokers, registered) {
		return nil
	}
	// The registration at the broker's start fails when its client has not found the name server yet, and
	// the next follows 10 s later. Setting the permission that it has anyway makes it register now.
	if _, _, err := callRemoting(ctx, addr, requestUpdateBrokerConfig, nil, []byte("brokerPermission=6\n")); err != nil {
		return fmt.Errorf("make the broker register: %w", err)
	}
	return fmt.Errorf("name server %s knows the brokers %q, not %s", nameServer, brokers, registered)
}

// javaStopGrace allows for a broker's shutdown hook, which takes ten seconds when idle.
const javaStopGrace = 45 * time.Second

type javaServer struct {
	main, template string
	jvm            []string
	answers        func(context.Context, *proc.Process) error
}

func (l layout) java(name, addr string, record recordFunc, s javaServer) *native {
	dir := l.folder(name)
	conf, logback := filepath.Join(dir, name+".conf"), filepath.Join(dir, "logback.xml")
	args := append(slices.Clone(s.jvm),
		"-XX:+UseSerialGC",
		// The optimizing compiler took 6 s of processor time in the first 20 s, on the cores that the run is
		// measured on; at the rates of one machine its code never pays that back.
		"-XX:TieredStopAtLevel=1",
		// Encryption would cost each start a generated RSA key.
		"-Dtls.server.mode=disabled",
		// No shared file in the temporary folder that a killed server would leave behind.
		"-XX:+PerfDisableSharedMem",
		"-Drocketmq.home.dir="+dir, "-Duser.home="+dir, "-Drmq.logback.configurationFile="+logback,
		"-cp", filepath.Join(l.binaries.RocketMQLib, "*"), s.main, "-c", conf)
	return &native{
		name: name, addr: addr, record: record, stopSignal: syscall.SIGTERM, stopGrace: javaStopGrace, answers: s.answers,
		prepare: func(context.Context) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := render("rocketmq/logback.xml", logback, nil); err != nil {
				return err
			}
			// broker.conf: transactionMetricFlushInterval also is how long a thread spins after the start
			// (10 s of a core by default), so it is short. timerFlushIntervalMs: each flush copies the whole
			// timer wheel, a third of a core at the default of once a second; a crash between two replays
			// the timer log from the last. Java's properties have no room for this comment
			// beside the value, and unknown or malformed ones are ignored.
			return render(s.template, conf, struct {
				Ports       Ports
				Bind, Store string
			}{l.ports, l.brokerHost(), filepath.Join(dir, "store")})
		},
		spec: func() proc.Spec {
			return proc.Spec{Name: name, Path: l.binaries.Java, Args: args, Dir: dir,
				LogPath: l.log(name), Nice: l.nice[name], Detached: l.detached}
		},
	}
}
