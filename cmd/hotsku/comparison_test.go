package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/verify/rundir"
)

// runsOf saves n runs whose hand-out took ms, or a little more.
func runsOf(t *testing.T, n int, ms float64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range n {
		run := rundir.Run{Schema: rundir.RunSchema, Verdict: rundir.VerdictPass, Name: "bench", Orders: rundir.OrdersResult{HandOutMS: ms + float64(i)}}
		text, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		one := rundir.Dir(filepath.Join(dir, fmt.Sprint(i)))
		if err := os.Mkdir(string(one), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(one.Run(), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCompareRunsExitsByWhatItFound(t *testing.T) {
	slow, fast, few := runsOf(t, 6, 2000), runsOf(t, 6, 1000), runsOf(t, 2, 2000)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{slow, fast}, 0, "nothing judged is worse"},
		{[]string{fast, slow}, 1, "worse: orders.hand_out_ms"},
		{[]string{fast, slow, "--tolerance", "2"}, 0, "nothing judged is worse"},
		{[]string{fast, few}, 2, "too few runs to tell"},
		{[]string{fast, slow, "--json"}, 1, `"worse": [`},
		{[]string{fast}, 64, "takes two run directories"},
		{[]string{fast, slow, "--alpha", "2"}, 64, "alpha 2: must be above 0"},
		{[]string{fast, t.TempDir()}, 2, "holds no run.json"},
	} {
		code, out, errs := hotsku(t.Context(), append([]string{"compare-runs"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("%v: exit %d, want %d with %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
}
