package wirings

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/scenarios/mutants"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

// Each name of the table is a design and the other way round, and each design
// fits the product's scripts and statements as they are now.
func TestEveryDesignIsInTheTable(t *testing.T) {
	var table []string
	for _, m := range mutants.All() {
		table = append(table, m.Name)
		if _, err := Wire(m.Name, func(seckill.FaultPoint) {}, func(int64, string) {}); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(table)
	if names := Names(); !slices.Equal(table, names) {
		t.Errorf("the table has\n%v\nthe designs are\n%v", table, names)
	}
	if _, err := Wire("get-then-decrement", nil, nil); err == nil || !strings.Contains(err.Error(), "did you mean get-then-decr?") {
		t.Errorf("an unknown name: %v", err)
	}
}

// An edit changes what it says and nothing else; one that does not fit is
// noticed at once.
func TestEditsFitOrPanic(t *testing.T) {
	changed := scripts(edit{"warm.lua", "return 1", "return 2"})
	was, err := fs.ReadFile(lua.FS, "warm.lua")
	if err != nil {
		t.Fatal(err)
	}
	is, err := fs.ReadFile(changed, "warm.lua")
	if err != nil || string(is) != strings.Replace(string(was), "return 1", "return 2", 1) {
		t.Errorf("%v, got\n%s", err, is)
	}
	same, err := fs.ReadFile(changed, "reserve.lua")
	if want, _ := fs.ReadFile(lua.FS, "reserve.lua"); err != nil || string(same) != string(want) {
		t.Errorf("%v: a script that was not edited is another", err)
	}
	for _, bad := range []edit{{"none.lua", "a", "b"}, {"warm.lua", "no such text", "b"}, {"warm.lua", "C('", "b"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v did not panic", bad)
				}
			}()
			scripts(bad)
		}()
	}
}

func TestFiringsAreNoted(t *testing.T) {
	dir := rundir.Dir(t.TempDir())
	if _, err := NoteIn(filepath.Join(string(dir), "none", "file"), "m"); err == nil {
		t.Error("a folder that is not there was no error")
	}
	path := filepath.Join(string(dir), "mutant.jsonl")
	fire, err := NoteIn(path, "m")
	if err != nil {
		t.Fatal(err)
	}
	for range firingsMax + 5 {
		fire(10, "did wrong")
	}
	other, err := NoteIn(path, "m") // another process
	if err != nil {
		t.Fatal(err)
	}
	other(10, "did wrong")
	n, err := mutants.CountFiringsIn(path, "m", 10)
	if err != nil || n != firingsMax+1 {
		t.Errorf("%d firings, %v; want %d", n, err, firingsMax+1)
	}
}
