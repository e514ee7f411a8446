package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every row of the track record can still be followed: its command names a
// scenario or a test that exists.
func TestTheTrackRecordCanBeFollowed(t *testing.T) {
	body, err := os.ReadFile("TRACKRECORD.md")
	if err != nil {
		t.Fatal(err)
	}
	chaosRun := regexp.MustCompile("^`bin/hotsku chaos run ([a-z0-9-]+) --seed [1-9][0-9]*`$")
	goTest := regexp.MustCompile("^`go test (?:-tags chaos )?\\./([a-z/]+) -run (Test[A-Za-z0-9]+)`$")
	commit := regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	rows := 0
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| what was wrong |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Errorf("not four cells: %s", line)
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if m := chaosRun.FindStringSubmatch(cells[1]); m != nil {
			if !slices.ContainsFunc(All(), func(s Scenario) bool { return s.Name == m[1] }) {
				t.Errorf("there is no scenario %s", m[1])
			}
		} else if m := goTest.FindStringSubmatch(cells[1]); m != nil {
			if !hasTest(t, filepath.Join("..", filepath.FromSlash(m[1])), m[2]) {
				t.Errorf("%s has no %s", m[1], m[2])
			}
		} else {
			t.Errorf("not one command that shows it: %s", cells[1])
		}
		if cells[0] == "" || !commit.MatchString(cells[2]) || cells[3] != "–" && !commit.MatchString(cells[3]) {
			t.Errorf("not a finding and two commits: %s", line)
		}
	}
	if rows == 0 {
		t.Error("the track record has no row")
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		body, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(body), "\nfunc "+name+"(")
	})
}
