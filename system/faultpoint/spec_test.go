package faultpoint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotsku/hotsku/system/seckill"
)

func TestSpecs(t *testing.T) {
	const p = seckill.FaultAccessAfterReserve
	for text, want := range map[string]Spec{
		"access.after-reserve=kill":            {Point: p, Kill: true, At: 1},
		"access.after-reserve=kill@3":          {Point: p, Kill: true, At: 3},
		"access.after-reserve=delay:50ms":      {Point: p, Delay: 50 * time.Millisecond, At: 1},
		"access.after-reserve=delay:1m@100":    {Point: p, Delay: time.Minute, At: 100},
		"projector.before-write=delay:1.5s@02": {Point: seckill.FaultProjectorBeforeWrite, Delay: 1500 * time.Millisecond, At: 2},
	} {
		if got, err := ParseSpec(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// Bad input gets one line that says what to do.
func TestSpecsThatAreNone(t *testing.T) {
	for text, hint := range map[string]string{
		"":                                              "want NAME=kill@N",
		"access.after-reserve":                          "want NAME=kill@N",
		"access.after-reserv=kill":                      "known are",
		"=kill":                                         "known are",
		"access.after-reserve=":                         "must be kill or delay",
		"access.after-reserve=Kill":                     "must be kill or delay",
		"access.after-reserve=stop@1":                   "must be kill or delay",
		"access.after-reserve=kill@":                    "count from 1",
		"access.after-reserve=kill@0":                   "count from 1",
		"access.after-reserve=kill@-1":                  "count from 1",
		"access.after-reserve=kill@1@2":                 "count from 1",
		"access.after-reserve=kill@1.5":                 "count from 1",
		"access.after-reserve=delay":                    "must be kill or delay",
		"access.after-reserve=delay:":                   "duration up to 1m",
		"access.after-reserve=delay:5":                  "duration up to 1m",
		"access.after-reserve=delay:0s":                 "duration up to 1m",
		"access.after-reserve=delay:-1s":                "duration up to 1m",
		"access.after-reserve=delay:61s":                "duration up to 1m",
		"access.after-reserve=kill=kill":                "must be kill or delay",
		"access.after-reserve=kill@9999999999999999999": "count from 1",
	} {
		if got, err := ParseSpec(text); err == nil || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %+v, %v, want one line with %q", text, got, err, hint)
		}
	}
}

// FuzzParseSpec: whatever is read means what it says, written out again it
// is the same; anything else is one line.
func FuzzParseSpec(f *testing.F) {
	for _, p := range seckill.FaultPoints() {
		f.Add(string(p) + "=kill@2")
		f.Add(string(p) + "=delay:5ms@7")
	}
	f.Add("access.after-reserve=kill@1\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: error is not one line: %q", text, err)
			}
			return
		}
		if s.At < 1 || s.Kill == (s.Delay > 0) || s.Delay > time.Minute {
			t.Fatalf("%q is %+v", text, s)
		}
		action := "kill"
		if !s.Kill {
			action = "delay:" + s.Delay.String()
		}
		if again, err := ParseSpec(fmt.Sprintf("%s=%s@%d", s.Point, action, s.At)); err != nil || again != s {
			t.Fatalf("%q is %+v, written out %+v, %v", text, s, again, err)
		}
	})
}
