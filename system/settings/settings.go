// Package settings fills a command's flags from the environment and a
// configuration file: a flag on the command line wins over the environment,
// that over the file's section for the command, that over the file's top,
// and that over the default. Names are the flags' everywhere: --name-server,
// SECKILL_NAME_SERVER, name-server. A secret may also stand in a file that
// the environment names: SECKILL_REDIS_PASSWORD_FILE.
//
// What nobody knows is an error and not a silence: a misspelt bound is a
// bound that does not hold.
package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// Source is where a value came from.
type Source string

// The sources, the strongest first.
const (
	FromFlag        Source = "flag"
	FromEnvironment Source = "environment"
	FromSecretFile  Source = "file named by the environment"
	FromFile        Source = "file"
	FromDefault     Source = "default"
)

// Prefix stands before every variable's name.
const Prefix = "SECKILL_"

// Variable is the environment variable of a flag.
func Variable(flag string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FileVariable names the environment variable that names the file of a secret.
func FileVariable(flag string) string { return Variable(flag) + "_FILE" }

// secretLimit bounds a secret's file.
const secretLimit = 1 << 16 // bytes

// readSecret reads a file with one secret, as a mounted volume has it; the
// line's end is no part of it.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, secretLimit+1))
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" || len(text) > secretLimit {
		return "", fmt.Errorf("%s: must hold one secret of 1 to %d bytes, it has %d", path, secretLimit, len(value))
	}
	return value, nil
}

// Fill sets the flags that the command line did not, and says where each
// value came from. lookup is os.LookupEnv; file may be nil.
func Fill(flags *pflag.FlagSet, section string, lookup func(string) (string, bool), file *File) (map[string]Source, error) {
	sources := make(map[string]Source)
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Name == "help" {
			return
		}
		value, inEnvironment := lookup(Variable(f.Name))
		path, inSecret := "", false
		if IsSecret(f) {
			path, inSecret = lookup(FileVariable(f.Name))
		}
		entry, inFile := file.find(section, f.Name)
		switch {
		case f.Changed:
			sources[f.Name] = FromFlag
		case inEnvironment && inSecret:
			err = fmt.Errorf("%s and %s exclude each other", Variable(f.Name), FileVariable(f.Name))
		case inSecret:
			sources[f.Name] = FromSecretFile
			if value, err = readSecret(path); err == nil {
				err = flags.Set(f.Name, value)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", FileVariable(f.Name), err)
			}
		case inEnvironment:
			sources[f.Name] = FromEnvironment
			if serr := flags.Set(f.Name, value); serr != nil {
				err = fmt.Errorf("%s: %w", Variable(f.Name), refused(serr))
			}
		case inFile:
			sources[f.Name] = FromFile
			if serr := set(flags, f, entry); serr != nil {
				err = fmt.Errorf("%s:%d: %s: %w", file.path, entry.line, f.Name, refused(serr))
			}
		default:
			sources[f.Name] = FromDefault
		}
	})
	return sources, err
}

// set gives a flag what the file has for it.
func set(flags *pflag.FlagSet, f *pflag.Flag, e entry) error {
	list, takesList := f.Value.(pflag.SliceValue)
	switch {
	case takesList:
		if err := list.Replace(e.values); err != nil {
			return err
		}
		f.Changed = true
		return nil
	case e.list:
		return errors.New("takes one value, not a list")
	}
	return flags.Set(f.Name, e.values[0])
}

// Nearest is the one of words that word was probably meant to be; empty if
// none is near.
func Nearest(word string, words []string) string {
	best, bestDistance := "", len(word)/4+2
	for _, w := range words {
		if d := levenshtein.ComputeDistance(word, w); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}
