package scenarios

import (
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hotsku/hotsku/chaos"
	"github.com/hotsku/hotsku/chaos/proxy"
	"github.com/hotsku/hotsku/scenarios/fleet"
	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// small is a scenario with everything a scenario can have.
func small() Scenario {
	return Scenario{
		Name: "small", Doc: "a kill", Tags: []string{"smoke"},
		Load:  Load{RatePerS: 500, Duration: 2 * time.Second, Stock: 100, Connections: 4, Depth: 16, Timeout: time.Second},
		Fleet: defaultFleet(2, true),
		Faults: []Fault{{Kind: KillPoint{Member: "access-2", Point: seckill.FaultAccessAfterSend, At: 3},
			Limits: chaos.Limits{Bite: time.Second, Down: time.Second, Heal: time.Second},
			Must:   []rundir.MustHit{{Hit: "killed", AtLeast: 1}}}},
		Invariants: []string{"I1", "I2"},
		SLOs:       []rundir.SLO{{Name: "fast", Metric: "latency_ms.all.p99", Op: "<", Target: 100}},
		Converge:   10 * time.Second,
	}
}

// change changes the first fault.
func change(s *Scenario, f func(*KillPoint)) {
	kill := s.Faults[0].Kind.(KillPoint)
	f(&kill)
	s.Faults[0].Kind = kill
}

// one is a fault of a kind's processes.
func one(kind string) KillOne { return KillOne{Kind: kind, Until: time.Second, Work: "work_total"} }

func TestScenarioValidate(t *testing.T) {
	if s := small(); s.Validate() != nil {
		t.Fatal(s.Validate())
	}
	for _, c := range []struct {
		rule   string
		change func(*Scenario)
		says   string
	}{
		{"needs a name", func(s *Scenario) { s.Name = "" }, "needs a name"},
		{"needs a fleet", func(s *Scenario) { s.Fleet = nil }, "a fleet"},
		{"needs invariants: it would prove nothing", func(s *Scenario) { s.Invariants = nil }, "invariants"},
		{"needs a time to converge in", func(s *Scenario) { s.Converge = 0 }, "time to converge"},
		{"needs a load that can be offered", func(s *Scenario) { s.Load.RatePerS = 0 }, "scenario small: rate 0"},
		{"names SLOs that verify can measure", func(s *Scenario) { s.SLOs[0].Metric = "latency_ms.all.p42" }, `metric "latency_ms.all.p42" is no figure`},
		{"names roles once", func(s *Scenario) { s.Fleet = append(s.Fleet, fleet.Role{Name: "consumer", Kind: "consumer"}) }, `two roles are named "consumer"`},
		{"breaks a process it has", func(s *Scenario) { change(s, func(k *KillPoint) { k.Member = "access-3" }) }, `no process "access-3"`},
		{"breaks at a point there is", func(s *Scenario) { change(s, func(k *KillPoint) { k.Point = "access.lunch" }) }, `fault point "access.lunch" is not known`},
		{"breaks at a hit that is counted", func(s *Scenario) { change(s, func(k *KillPoint) { k.At = 0 }) }, "hit 0 of the point"},
		{"says what its fault must hit", func(s *Scenario) { s.Faults[0].Must = nil }, "must say what it must hit"},
		{"breaks in some way", func(s *Scenario) { s.Faults[0].Kind = nil }, "is of a kind"},
		{"kills one of several", func(s *Scenario) { s.Faults[0].Kind = one("scanner") }, `1 processes of kind "scanner"`},
		{"kills while the load lasts", func(s *Scenario) {
			s.Faults[0].Kind = one("access")
			s.Load.Duration = time.Second - 1
		}, "up to 1s into a load of 999.999999ms"},
		{"kills at a moment there is", func(s *Scenario) {
			s.Faults[0].Kind = KillOne{Kind: "access", From: time.Second, Until: time.Second, Work: "w"}
		}, "from 1s to 1s"},
		{"says what the others do", func(s *Scenario) {
			s.Faults[0].Kind = KillOne{Kind: "access", Until: time.Second}
		}, "by which metric"},
		{"breaks a server there is", func(s *Scenario) { s.Faults[0].Kind = ServerDown{Server: "mysql"} }, `no server "mysql"`},
		{"breaks a server in a way there is", func(s *Scenario) { s.Faults[0].Kind = ServerDown{Server: "redis", How: "scold"} }, `"scold" is no way`},
		{"says who misses a server", func(s *Scenario) { s.Faults[0].Kind = ServerDown{Server: "redis", How: chaos.HaltKill} }, "of whom it is missed"},
		{"has somebody who misses a server", func(s *Scenario) {
			s.Faults[0].Kind = ServerDown{Server: "redis", How: chaos.HaltKill, Until: time.Second, By: "orders", Felt: "x"}
		}, `no process of kind "orders"`},
		{"stops a process it has", func(s *Scenario) {
			s.Faults[0].Kind = ProcessDown{Member: "clerk", How: chaos.HaltStop, Until: time.Second, By: "access", Felt: "x"}
		}, `no process "clerk"`},
		{"stops a process in a way there is", func(s *Scenario) { s.Faults[0].Kind = ProcessDown{Member: "scanner"} }, `"" is no way`},
		{"says who sees that a process is away", func(s *Scenario) { s.Faults[0].Kind = ProcessDown{Member: "scanner", How: chaos.HaltStop} }, "of whom that is seen"},
		{"tells its faults apart", func(s *Scenario) { s.Faults = append(s.Faults, s.Faults[0]) }, "two faults are named kill@access.after-send"},
		{"has no more tokens than stock", func(s *Scenario) { s.Sale.Tokens = 101 }, "101 tokens for a stock of 100"},
		{"lasts", func(s *Scenario) { s.Sale.Length = -1 }, "a sale of -1ns"},
		{"asks for a hit at least", func(s *Scenario) { s.Faults[0].Must[0].AtLeast = 0 }, `must hit "killed" at least 0 times`},
		{"bounds its fault", func(s *Scenario) { s.Faults[0].Limits.Heal = 0 }, "heal in 0s"},
		{"has somebody who serves", func(s *Scenario) { s.Fleet, s.Faults = defaultFleet(0, true), nil }, "an access process"},
		{"has a connection for each access process", func(s *Scenario) { s.Load.Connections = 1 }, "1 connections for 2 access processes"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := small()
			c.change(&s)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want %q", err, c.says)
			}
		})
	}
}

func TestEveryScenarioOfTheTableCanRun(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range append(All(), Bench(LoadDefault)) {
		t.Run(s.Name, func(t *testing.T) {
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			if seen[s.Name] || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(s.Name) {
				t.Errorf("name %q is taken or no word for a command line", s.Name)
			}
			seen[s.Name] = true
			if s.Doc == "" || strings.Contains(s.Doc, "\n") {
				t.Errorf("doc %q is not a line", s.Doc)
			}
			if s.Name != "bench" && len(s.Tags) == 0 {
				t.Error("no tag: neither CI nor a night would run it")
			}
			if len(s.Faults) > 0 {
				for _, role := range s.Fleet {
					if !role.Chaos {
						t.Errorf("%s is no chaos build: the fleet under faults would differ from process to process", role.Name)
					}
				}
			}
			plan := s.plan(1, "hotsku", rundir.SLOEnforce, 1, time.Unix(0, 0))
			if err := plan.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// members is a fleet that does not run.
func members(t *testing.T, roles []fleet.Role) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(fleet.Config{LogDir: t.TempDir(), StartTimeout: 1, StopGrace: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		if _, err := f.Add(role); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// named is a server that does not run.
type named struct {
	stack.Server
	name string
}

func (n named) Name() string { return n.name }

func servers() []stack.Server {
	return []stack.Server{named{name: stack.RedisName}, named{name: stack.PostgresName}, named{name: stack.NameServerName}, named{name: stack.BrokerName}}
}

// waysToNowhere are a scenario's proxies, with nobody behind them.
func waysToNowhere(t *testing.T, s *Scenario) map[Way]*proxy.Proxy {
	t.Helper()
	ways := map[Way]*proxy.Proxy{}
	nowhere := stack.Addresses{Redis: "127.0.0.1:1", Postgres: "postgres://u@127.0.0.1:1/d", Broker: proxy.AnyAddr, BrokerDirect: "127.0.0.1:1"}
	for _, w := range s.ways() {
		p, _, err := openWay(w, nowhere, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		ways[w] = p
	}
	return ways
}

// The plan and the timeline must name a fault alike, or what it hit would not
// be counted for it.
func TestAFaultIsNamedAlikeInPlanAndTimeline(t *testing.T) {
	table := append(All(), small())
	for _, s := range All() {
		for seed := range uint64(100) {
			if s.Draw != nil {
				s = s.Drawn(seed)
				if err := s.Validate(); err != nil {
					t.Fatal(err)
				}
				table = append(table, s)
			}
		}
	}
	for _, s := range table {
		plan := s.plan(1, "", rundir.SLOEnforce, 1, time.Unix(0, 0))
		at := site{ways: waysToNowhere(t, &s), fleet: members(t, s.Fleet), servers: servers(), plan: plan, hitFile: "hits", rng: rand.New(rand.NewPCG(1, 2))}
		for _, f := range s.Faults {
			fault, err := f.Kind.build(at)
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			if fault.Name() != f.Kind.name() || !slices.ContainsFunc(plan.MustHits, func(m rundir.MustHit) bool { return m.Fault == fault.Name() }) {
				t.Errorf("%s: the plan awaits hits of %+v, the fault is %s", s.Name, plan.MustHits, fault.Name())
			}
			if f.Must[0].Fault != "" {
				t.Error("making a plan changed the scenario")
			}
		}
	}
}

func TestAFaultOfNobodyIsNotBuilt(t *testing.T) {
	nobody := site{fleet: members(t, nil), rng: rand.New(rand.NewPCG(1, 2))}
	for _, kind := range []Kind{small().Faults[0].Kind, one("scanner"), ServerDown{Server: "redis", Until: 1}, ProcessDown{Member: "scanner", Until: 1}} {
		if _, err := kind.build(nobody); err == nil {
			t.Errorf("%s of nobody was built", kind.name())
		}
	}
}

// Who dies and when is the seed's alone, and seeds differ in both.
func TestTheSeedSaysWhichOfSeveralDiesAndWhen(t *testing.T) {
	f := members(t, twoOfEach())
	kill := KillOne{Kind: "consumer", From: time.Second, Until: 4 * time.Second, Work: "w"}
	build := func(seed uint64) *chaos.KillAtMoment {
		fault, err := kill.build(site{fleet: f, rng: rand.New(rand.NewPCG(seed, 0))})
		if err != nil {
			t.Fatal(err)
		}
		return fault.(*chaos.KillAtMoment)
	}
	victims, moments := map[string]int{}, map[time.Duration]bool{}
	for seed := range uint64(50) {
		k, again := build(seed), build(seed)
		if k.Target() != again.Target() || k.Moment.After != again.Moment.After {
			t.Errorf("seed %d: %s after %v, then %s after %v", seed, k.Target(), k.Moment.After, again.Target(), again.Moment.After)
		}
		if k.Moment.After < kill.From || k.Moment.After >= kill.Until {
			t.Errorf("seed %d: after %v", seed, k.Moment.After)
		}
		victims[k.Target()]++
		moments[k.Moment.After] = true
	}
	if len(victims) != 2 || victims["consumer-1"] < 10 || victims["consumer-2"] < 10 || len(moments) < 50 {
		t.Errorf("victims %v, %d moments", victims, len(moments))
	}
}

func TestPlanGolden(t *testing.T) {
	s := small()
	plain := Scenario{Name: "plain", Load: s.Load, Fleet: defaultFleet(1, false), Invariants: []string{"I1"}, Converge: time.Minute}
	for name, plan := range map[string]*rundir.Plan{
		"plan-faults": s.plan(7, "hotsku chaos run small --seed 7", rundir.SLOEnforce, 1000, time.Date(2026, 11, 11, 0, 0, 0, 0, time.FixedZone("CST", 8*3600))),
		"plan-plain":  plain.plan(1<<64-1, "hotsku bench", rundir.SLOReport, 1000, time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(plan, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".golden.json")
			if *update {
				if err := rundir.WriteFile(path, append(got, '\n')); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test ./scenarios -update writes it)", err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("%s (-golden +now):\n%s", path, diff)
			}
			if err := plan.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPrepareDir(t *testing.T) {
	root := t.TempDir()
	file, full := filepath.Join(root, "file"), filepath.Join(root, "full")
	if err := errors.Join(os.WriteFile(file, []byte("mine"), 0o600), os.MkdirAll(filepath.Join(full, "mine"), 0o755), os.Mkdir(filepath.Join(root, "empty"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "new", "new/with/parents"} {
		dir := rundir.Dir(filepath.Join(root, name))
		if err := prepareDir(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(dir.Logs()); err != nil || !info.IsDir() {
			t.Errorf("%s: no folder for logs: %v", name, err)
		}
	}
	for path, says := range map[string]string{full: "is not empty: give --out a new or empty folder", file: "is a file, or below one", filepath.Join(file, "x"): "is a file, or below one", "/proc/hotsku": "that you may write"} {
		err := prepareDir(rundir.Dir(path))
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error is %v, want ErrUsage and %q", path, err, says)
		}
	}
	if body, err := os.ReadFile(file); err != nil || string(body) != "mine" {
		t.Errorf("the file was changed: %q, %v", body, err)
	}
	if entries, err := os.ReadDir(full); err != nil || len(entries) != 1 {
		t.Errorf("the folder was changed: %v, %v", entries, err)
	}
}
