package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noArgs refuses positional arguments with the exit code of a bad command
// line, and says which command was probably meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usageError{fmt.Errorf("%s takes no argument, but got %q; %[1]s --help lists the flags", cmd.CommandPath(), args[0])}
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return usageError{fmt.Errorf("unknown command %q%s; %s --help lists the commands", args[0], didYouMean("", args[0], names), cmd.CommandPath())}
}

// didYouMean names the word that was probably meant, behind prefix; empty if
// none is near.
func didYouMean(prefix, word string, words []string) string {
	best, least := "", len(word)/4+2
	for _, w := range words {
		if d := levenshtein.ComputeDistance(word, w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + prefix + best + "?)"
}

// flagError says in the user's words why a flag cannot be obeyed, not in those
// of the package that parsed it.
func flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help lists the flags"
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usageError{fmt.Errorf("--%s %q: %s; %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid), hint)}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return usageError{fmt.Errorf("%w%s; %s", err, didYouMean("--", unknown.GetSpecifiedName(), names), hint)}
	}
	return usageError{fmt.Errorf("%w; %s", err, hint)}
}

// wanted is what the flag takes.
func wanted(e *pflag.InvalidValueError) string {
	kind := e.GetFlag().Value.Type()
	number := "a number"
	switch {
	case strings.HasPrefix(kind, "uint"):
		number = "a whole number, 0 or more"
	case strings.HasPrefix(kind, "int"), kind == "count":
		number = "a whole number"
	}
	_, isNumber := errors.AsType[*strconv.NumError](e)
	switch {
	case kind == "bool":
		return "must be true or false"
	case isNumber && errors.Is(e, strconv.ErrRange):
		return "is out of range: must be " + number
	case isNumber:
		return "must be " + number
	case kind == "duration":
		return "must be a length of time such as 500ms, 10s or 2m"
	}
	return e.Unwrap().Error()
}
