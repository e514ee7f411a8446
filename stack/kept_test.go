package stack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/stack/proc"
)

func TestKeptStackOutlivesItsProcessUntilRemoved(t *testing.T) {
	needServers(t)
	t.Parallel()
	base := testBase(t)
	ctx := deadline(t)
	first, info := runHelper(t, helperKeep, base)
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if !info.Kept || info.Name != "kept" {
		t.Fatalf("got %+v", info)
	}
	if removed, err := CleanLeftovers(ctx, base); err != nil || len(removed) > 0 {
		t.Fatalf("removed %q, %v: a kept stack is no leftover", removed, err)
	}
	l, err := readLock(filepath.Join(base, "kept"))
	if err != nil {
		t.Fatal(err)
	}

	s, ran, err := UpKept(ctx, Options{Base: base, Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if !ran || s.Addresses() != info.Addresses {
		t.Errorf("a second up: ran %v, %+v; want the stack as it is, %+v", ran, s.Addresses(), info.Addresses)
	}
	if _, ran, err := UpKept(ctx, Options{Base: base, Name: "kept", PortBase: l.Ports.base()}); err != nil || !ran {
		t.Errorf("up on its own ports: ran %v, %v", ran, err)
	}
	if _, _, err := UpKept(ctx, Options{Base: base, Name: "kept", PortBase: l.Ports.base() + blockSize}); !errors.Is(err, ErrOtherPorts) ||
		!strings.Contains(err.Error(), "hotsku down --stack kept") {
		t.Errorf("up on other ports: %v, want ErrOtherPorts and what to do", err)
	}
	if _, err := redisCommand(ctx, s.Addresses().Redis, "SET k v"); err != nil {
		t.Fatal(err)
	}
	if err := s.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	infos, err := List(base)
	if err != nil || infos[0].Servers[0].PID != 0 || infos[0].Servers[1].PID == 0 {
		t.Errorf("got %+v, %v; want Redis alone stopped", infos, err)
	}

	second, again := runHelper(t, helperKeep, base)
	if err := second.Wait(); err != nil {
		t.Fatal(err)
	}
	if again.Addresses != info.Addresses || again.Servers[1].PID != info.Servers[1].PID {
		t.Errorf("up restarted more than what was stopped: %+v, before %+v", again, info)
	}
	if got, err := redisCommand(ctx, info.Addresses.Redis, "GET k"); err != nil || got != "v" {
		t.Errorf("Redis answers %q, %v; want its data", got, err)
	}

	if err := RemoveKept(ctx, base, "kept"); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, base, l)
	if err := RemoveKept(ctx, base, "kept"); !errors.Is(err, ErrNoStack) {
		t.Errorf("got %v, want ErrNoStack", err)
	}
}

func TestStackOfAKilledOwnerIsALeftover(t *testing.T) {
	needServers(t)
	t.Parallel()
	base := testBase(t)
	owner, info := runHelper(t, helperOwn, base)
	l, err := readLock(info.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if l.leftover() {
		t.Fatal("it is one while its owner lives")
	}
	var servers []*proc.Process
	for _, name := range []string{RedisName, PostgresName, NameServerName, BrokerName} {
		p, err := proc.Attach(name, l.Children[name], "")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		servers = append(servers, p)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range servers {
		select {
		case <-p.Done():
		case <-time.After(hang):
			t.Errorf("%s outlives its owner", p.Name())
		}
	}
	_ = owner.Wait() // it was killed
	removed, err := CleanLeftovers(deadline(t), base)
	if err != nil || len(removed) != 1 || removed[0] != info.Name {
		t.Errorf("removed %q, %v; want %s", removed, err, info.Name)
	}
	wantNothingLeft(t, base, l)
}

func TestLeftoversAreEndedByPIDAndStartTimeOnly(t *testing.T) {
	base := testBase(t)
	sleeper := func(name string) *proc.Process {
		p, err := proc.Start(proc.Spec{Name: name, Path: "/bin/sleep", Args: []string{"300"},
			LogPath: filepath.Join(t.TempDir(), "log")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
		return p
	}
	child, stranger, owner := sleeper("child"), sleeper("stranger"), sleeper("owner")
	reused := stranger.Identity()
	reused.Start--
	ownerID := owner.Identity()
	if err := owner.Kill(); err != nil {
		t.Fatal(err)
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*proc.Identity{"dead": &ownerID, "living": &self, "kept": nil} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		l := lock{Schema: lockSchema, Name: name, Owner: o, Ports: block(20000)}
		if name == "dead" {
			l.Children = map[string]proc.Identity{"child": child.Identity(), "reused": reused}
		}
		if err := writeLock(dir, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(base, "not-ours"), 0o755); err != nil {
		t.Fatal(err)
	}

	removed, err := CleanLeftovers(deadline(t), base)
	if err != nil || len(removed) != 1 || removed[0] != "dead" {
		t.Errorf("removed %q, %v; want only the dead owner's", removed, err)
	}
	select {
	case <-child.Done():
	case <-time.After(hang):
		t.Error("the leftover's child still runs")
	}
	if !stranger.Identity().Alive() {
		t.Error("a process that took over a child's pid was ended")
	}
	for _, name := range []string{"living", "kept", "not-ours"} {
		dir := filepath.Join(base, name)
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}
