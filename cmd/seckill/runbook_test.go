package main

import (
	"os"
	"strings"
	"testing"
)

// R16.12: every seckill command the runbook tells a person to type exists,
// with every flag it is given.
func TestTheRunbooksCommandsExist(t *testing.T) {
	body, err := os.ReadFile("../../system/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	inCode := false
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
			continue
		}
		if !inCode || !strings.HasPrefix(line, "seckill ") {
			continue
		}
		found++
		line, _, _ = strings.Cut(line, " #")
		line, _, _ = strings.Cut(line, " >")
		args := strings.Fields(line)[1:]
		cmd, rest, err := newRoot().Find(args)
		if err != nil || cmd.Parent() == nil || cmd.RunE == nil || cmd.HasSubCommands() {
			t.Errorf("%q is no command: %v", line, err)
			continue
		}
		for _, arg := range rest {
			name, isFlag := strings.CutPrefix(arg, "--")
			if name, _, _ = strings.Cut(name, "="); isFlag && cmd.Flags().Lookup(name) == nil {
				t.Errorf("%q: %s has no flag --%s", line, cmd.CommandPath(), name)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d commands found in the runbook", found)
	}
}
