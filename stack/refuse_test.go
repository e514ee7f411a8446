package stack

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestUpRefusesAndChangesNothing(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	_, portText, _ := net.SplitHostPort(busy.Addr().String())
	noJars := filepath.Join(t.TempDir(), "lib")
	for _, c := range []struct {
		name    string
		o       Options
		wrapped error
		says    string // regular expression
	}{
		{"a port that is in use", Options{PortBase: port - 1}, nil, "^stack: port " + portText + ", wanted for PostgreSQL, is in use: .*choose another port base"},
		{"no redis-server", Options{Binaries: Binaries{RedisServer: "/nonexistent/redis-server"}}, ErrNotInstalled, "run make setup, or install the package redis-server$"},
		{"no PostgreSQL", Options{Binaries: Binaries{PostgresBin: "/nonexistent"}}, ErrNotInstalled, "install the package postgresql-15$"},
		{"no Java", Options{Binaries: Binaries{Java: "/nonexistent/java"}}, ErrNotInstalled, "install the package openjdk-17-jre-headless$"},
		{"no RocketMQ, or half of it", Options{Binaries: Binaries{RocketMQLib: noJars}}, ErrNotInstalled, "RocketMQ .* run make setup$"},
		{"a port base out of range", Options{PortBase: 65530}, nil, "port base 65530: want 1024 to 65527"},
		{"a name that leaves the folder", Options{Name: "../x"}, nil, `name "\.\./x"`},
		{"a kept stack without a name", Options{Keep: true}, nil, "needs a name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Base = testBase(t)
			s, err := Up(deadline(t), c.o)
			if err == nil {
				down(t, s)
				t.Fatal("no error")
			}
			if c.wrapped != nil && !errors.Is(err, c.wrapped) {
				t.Errorf("%v does not wrap %v", err, c.wrapped)
			}
			if !regexp.MustCompile(c.says).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line like %q", err, c.says)
			}
			wantEmpty(t, c.o.Base)
		})
	}
}

func TestServerThatDiesAtItsStartIsCitedAndNothingIsLeft(t *testing.T) {
	needServers(t)
	base := testBase(t)
	fake := filepath.Join(t.TempDir(), "redis-server")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\necho 'Fatal: no luck today'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Up(deadline(t), Options{Base: base, Binaries: Binaries{RedisServer: fake}})
	if err == nil {
		down(t, s)
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), "redis") || !strings.Contains(err.Error(), "no luck today") || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("got %q, want the server, how it ended and its last words", err)
	}
	wantEmpty(t, base)
}

func TestStateFolderThatPostgresCannotReach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("PostgreSQL runs as the caller")
	}
	closed := t.TempDir() // below a folder that is the caller's alone
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(closed, "state")
	s, err := Up(deadline(t), Options{Base: base})
	if err == nil {
		down(t, s)
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), "set HOTSKU_STATE") {
		t.Errorf("got %q", err)
	}
	wantEmpty(t, base)
}

func TestBrokenLockIsNamed(t *testing.T) {
	base := testBase(t)
	dir := filepath.Join(base, "x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"truncated":        `{"schema":"hotsku.st`,
		"another version":  `{"schema":"hotsku.stack-lock/9","name":"x"}`,
		"another's folder": `{"schema":"` + lockSchema + `","name":"y"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, lockFile)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := List(base); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error naming %s", err, path)
			}
		})
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
