// Package wirings makes the wrong designs: each is the product's wiring with
// one part replaced, as small as it can be. Nothing of it is in the product.
//
// A design fires when it did what is wrong with it: not whenever the replaced
// part was used, but when its answer differed from the right one.
//
// Imports allowed: scenarios/mutants for the words, system.
package wirings

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/hotsku/hotsku/lua"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/order"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/settings"
)

// Fire notes that the design did wrong in the sale of an activity. Safe for
// concurrent use.
type Fire func(activityID int64, what string)

// designs are the wrong designs by name: each changes the product's wiring.
var designs = map[string]func(*app.Wiring, Fire){
	"get-then-decr":                    getThenDecr,
	"stock-rebuilt-ignoring-in-flight": stockRebuilt,
	"gate-forgets-winners":             gateForgetsWinners,
	"new-message-id-per-resend":        newMessageIDPerResend,
	"client-retry-instead-of-scanner":  noScanner,

	"gate-never-reopens":               gateNeverReopens,
	"order-success-on-reserve":         orderSuccessOnReserve,
	"requery-miss-allows-new-purchase": requeryMiss,
	"no-final-stock-check":             noFinalStockCheck,
	"ack-before-commit":                ackBeforeCommit,
	"inbox-outside-the-transaction":    inboxOutside,
	"phantom-stock-returned":           phantomStockReturned,
}

// Names are those of the designs, sorted.
func Names() []string { return slices.Sorted(maps.Keys(designs)) }

// Wire returns the product's wiring with the design of that name in it; hit
// takes the fault points.
func Wire(name string, hit func(seckill.FaultPoint), fire Fire) (app.Wiring, error) {
	w := app.DefaultWiring(hit)
	design, ok := designs[name]
	if !ok {
		return w, fmt.Errorf("there is no wrong design %q%s; --help lists them", name, nearest(name))
	}
	design(&w, fire)
	return w, nil
}

func nearest(name string) string {
	if near := settings.Nearest(name, Names()); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// edit is one change of a script or statement: old, which must be there once,
// becomes new; with nothing old, the whole file does.
type edit struct{ file, old, new string }

// scripts is the product's Lua with edits.
func scripts(edits ...edit) fs.FS { return edited(lua.FS, ".", edits) }

// statements is the SQL of the order transaction with edits.
func statements(edits ...edit) fs.FS { return edited(order.SQL, "sql", edits) }

// edited panics where an edit does not fit: the product has changed, and the
// design must follow it.
func edited(files fs.FS, dir string, edits []edit) fs.FS {
	out := fstest.MapFS{}
	err := fs.WalkDir(files, dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, path)
		out[path] = &fstest.MapFile{Data: body}
		return err
	})
	if err != nil {
		panic(err)
	}
	for _, e := range edits {
		file := out[e.file]
		if file == nil {
			panic("no file " + e.file)
		}
		body := e.new
		if e.old != "" {
			if n := strings.Count(string(file.Data), e.old); n != 1 {
				panic(fmt.Sprintf("%s has %q %d times", e.file, e.old, n))
			}
			body = strings.Replace(string(file.Data), e.old, e.new, 1)
		}
		out[e.file] = &fstest.MapFile{Data: []byte(body)}
	}
	return out
}
