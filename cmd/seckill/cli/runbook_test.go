package cli

import (
	"os"
	"strings"
	"testing"
)

// R16.12: every seckill command that the runbook and the README tell a person
// to type exists, with every flag it is given.
func TestTheRunbooksCommandsExist(t *testing.T) {
	for page, least := range map[string]int{"../../../system/RUNBOOK.md": 20, "../../../README.md": 4} {
		t.Run(page, func(t *testing.T) { commandsExist(t, page, least) })
	}
}

// commandsExist looks at a page that has at least so many commands.
func commandsExist(t *testing.T, page string, least int) {
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	inCode := false
	for line := range strings.Lines(string(body)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "bin/")
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
		cmd, rest, err := reference().Find(args)
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
	if found < least {
		t.Errorf("%d commands found, want %d or more", found, least)
	}
}
