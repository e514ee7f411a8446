package hotsku_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hotsku/hotsku/"

// The arrows between the parts (README, architecture): each rule names
// packages by prefix, and what they may not reach, directly or through
// others. Tests may: they need servers.
var forbidden = []struct {
	rule   string
	from   []string
	except []string
	never  []string
	but    []string
}{
	{rule: "the system imports nothing of the harness",
		from: []string{"system/", "lua", "migrations", "cmd/seckill"}, never: []string{"loadgen", "chaos", "scenarios", "verify", "reports", "stack", "cmd/hotsku"}},
	{rule: "the harness knows the system's words and nothing else of it",
		from: []string{"loadgen", "chaos", "scenarios", "verify", "reports", "stack", "cmd/hotsku"}, except: []string{"scenarios/mutants/wirings"},
		never: []string{"system/", "lua", "migrations"}, but: []string{"system/seckill"}},
	{rule: "the generator knows no seckill word", from: []string{"loadgen"}, never: []string{"system/", "verify", "chaos", "scenarios", "reports", "stack"}},
	{rule: "the servers know nobody", from: []string{"stack"}, never: []string{"system/", "verify", "chaos", "scenarios", "reports", "loadgen"}},
	{rule: "the verifier judges files", from: []string{"verify"}, except: []string{"verify/snapshot"},
		never: []string{"stack", "chaos", "scenarios", "reports"}},
	{rule: "only the binaries reach the composition root", from: []string{"system/", "loadgen", "chaos", "verify", "reports", "stack"}, except: []string{"system/app"},
		never: []string{"system/app"}},
	{rule: "the domain's words import no other package", from: []string{"system/seckill"}, never: []string{"system/", "lua", "migrations"}, but: []string{"system/seckill"}},
}

func TestImportsPointOneWay(t *testing.T) {
	packages := list(t)
	if len(packages) < 20 {
		t.Fatalf("only %d packages found: the rules were not tried", len(packages))
	}
	for _, rule := range forbidden {
		tried := 0
		for _, p := range packages {
			name := strings.TrimPrefix(p.ImportPath, module)
			if !has(rule.from, name) || has(rule.except, name) {
				continue
			}
			tried++
			for _, dep := range p.Deps {
				dep, ours := strings.CutPrefix(dep, module)
				if ours && has(rule.never, dep) && !has(rule.but, dep) {
					t.Errorf("%s: %s imports %s", rule.rule, name, dep)
				}
			}
		}
		if tried == 0 {
			t.Errorf("%s: no package is %v", rule.rule, rule.from)
		}
	}
}

// A run directory is judged without servers: no client library is linked in.
func TestTheVerifierLinksNoClient(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath != module+"verify" {
			continue
		}
		for _, dep := range p.Deps {
			for _, client := range []string{"github.com/jackc/pgx", "github.com/redis/go-redis", "github.com/apache/rocketmq-client-go"} {
				if strings.HasPrefix(dep, client) {
					t.Errorf("verify links %s", dep)
				}
			}
		}
		return
	}
	t.Error("package verify was not found")
}

type pkg struct {
	ImportPath string
	Deps       []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Deps", "./...")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var packages []pkg
	for dec := json.NewDecoder(out); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return packages
}

// has says whether name is one of the packages or below one.
func has(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		return name == p || strings.HasPrefix(name, p+"/")
	})
}

// R7.2.1, R7.2.2: the synchronous path can touch Redis and RocketMQ only: no
// PostgreSQL client is linked into it.
func TestTheEdgeLinksNoDatabase(t *testing.T) {
	tried := 0
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !has([]string{"system/access", "system/admission"}, name) {
			continue
		}
		tried++
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/jackc/pgx") || dep == "database/sql" {
				t.Errorf("%s links %s", name, dep)
			}
		}
	}
	if tried < 3 {
		t.Errorf("%d packages of the edge were found", tried)
	}
}
