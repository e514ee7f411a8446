// Package prometheus_test holds the alert rules against the code and the
// runbook: an alert about a metric nobody exports never fires, and one that
// leads nowhere helps nobody.
package prometheus_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../../"

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	body, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	dec := yaml.NewDecoder(strings.NewReader(string(body)))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 20 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

var (
	word     = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*`)
	brackets = regexp.MustCompile(`\[[^\]]*\]`)
	grouping = regexp.MustCompile(`\b(by|without|on|ignoring)\s*\([^)]*\)`)
	literal  = regexp.MustCompile(`"([a-z][a-z0-9_]+)"`)
)

// promql are the words of the language that the rules use.
var promql = []string{"histogram_quantile", "sum", "max", "min", "rate", "increase", "deriv", "absent", "time", "and", "or"}

// metrics lists what an expression reads.
func metrics(expr string) []string {
	expr = grouping.ReplaceAllString(brackets.ReplaceAllString(expr, ""), "")
	var names []string
	for _, name := range word.FindAllString(expr, -1) {
		if !slices.Contains(promql, name) {
			names = append(names, name)
		}
	}
	return names
}

// exported are the names that stand in the system's code as whole strings,
// which is how it registers a metric.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root+"system", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		body, err := os.ReadFile(path)
		for _, m := range literal.FindAllStringSubmatch(string(body), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// R12.2 R12.3 R12.4 R12.5
func TestEveryAlertReadsMetricsThatExist(t *testing.T) {
	known := exported(t)
	for _, r := range rules(t) {
		names := metrics(r.Expr)
		if len(names) == 0 {
			t.Errorf("%s reads no metric: %s", r.Alert, r.Expr)
		}
		for _, name := range names {
			base := strings.TrimSuffix(name, "_bucket")
			if !known[base] {
				t.Errorf("%s reads %s, which no role exports", r.Alert, name)
			}
		}
		if strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") || strings.Count(r.Expr, "[") != strings.Count(r.Expr, "]") {
			t.Errorf("%s: brackets do not match: %s", r.Alert, r.Expr)
		}
	}
}

// R12.2 (four alerts), R12.3, 11: the alerts that the specification asks for.
func TestTheAlertsOfTheSpecificationAreThere(t *testing.T) {
	of := map[string]string{}
	for _, r := range rules(t) {
		if _, twice := of[r.Alert]; twice {
			t.Errorf("%s is there twice", r.Alert)
		}
		of[r.Alert] = r.Expr
	}
	for alert, exprs := range map[string][]string{
		"SeckillOldestPendingAge":   {"reservation_oldest_pending_age) > 5"},
		"SeckillPendingGrowing":     {"deriv(", "reservation_pending_count"},
		"SeckillLuaSlow":            {"0.99", "reservation_lua_duration_bucket", "> 0.05"},
		"SeckillRedisStockNegative": {"redis_stock_value) < 0"},
		"SeckillOrdersBehind":       {"consumer_lag", " and ", "oldest_message_age"},
		"SeckillDeadLettersOpen":    {"dead_letter_oldest_age"},
		"SeckillOutboxUnpublished":  {"outbox_oldest_unpublished_age"},
		"SeckillNotConserved":       {"inventory_conservation_delta"},
	} {
		for _, part := range exprs {
			if !strings.Contains(of[alert], part) {
				t.Errorf("%s is %q, and lacks %q", alert, of[alert], part)
			}
		}
	}
}

var anchor = regexp.MustCompile(`<a id="([a-z0-9-]+)"></a>`)

// R16.12: every alert leads to a section of the runbook that names it, and
// every row of chapter 11 has one.
func TestEveryAlertLeadsToTheRunbook(t *testing.T) {
	body, err := os.ReadFile(root + "system/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	sections := map[string]string{}
	marks := anchor.FindAllStringSubmatchIndex(text, -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		sections[text[m[2]:m[3]]] = text[m[1]:end]
	}
	for row := range 15 {
		id := "r11-" + []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}[row]
		s := sections[id]
		for _, part := range []string{"**Seen by**", "**Recovers**", "**By hand**"} {
			if !strings.Contains(s, part) {
				t.Errorf("the runbook's section %s lacks %s", id, part)
			}
		}
	}
	seen := map[string]bool{}
	for _, r := range rules(t) {
		section, ok := sections[r.Annotations["runbook"]]
		if !ok || !strings.Contains(section, r.Alert) {
			t.Errorf("%s leads to %q, which does not name it", r.Alert, r.Annotations["runbook"])
		}
		if r.Annotations["summary"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
			t.Errorf("%s has no summary or severity: %+v", r.Alert, r)
		}
		seen[r.Alert] = true
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		// As a word: SeckillDeadLetters also begins SeckillDeadLettersOpen.
		if n := len(regexp.MustCompile(`\b`+name+`\b`).FindAllString(text, -1)); n != 1 {
			t.Errorf("the runbook names %s %d times", name, n)
		}
	}
	known := exported(t)
	for _, m := range regexp.MustCompile("`([a-z]+_[a-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		if !known[m[1]] {
			t.Errorf("the runbook speaks of `%s`, which the code does not know", m[1])
		}
	}
}

func TestTheReaderOfExpressions(t *testing.T) {
	got := metrics(`histogram_quantile(0.99, sum by (le, role) (rate(a_bucket[1m]))) > 0.1 or deriv(max(b)[1m:5s]) > 0 and time() - max(c) > 1`)
	if want := []string{"a_bucket", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
