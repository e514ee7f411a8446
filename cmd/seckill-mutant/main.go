// Command seckill-mutant is the product with one wrong design, for
// `hotsku mutants`: never sell anything with it.
//
//	seckill-mutant --mutant NAME --mutant-file FILE ROLE …
//
// What follows is the product's command line. Each time the design did wrong
// it appends a line to the file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/hotsku/hotsku/cmd/seckill/cli"
	"github.com/hotsku/hotsku/scenarios/mutants/wirings"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/faultpoint"
)

// exitUsage: the command line cannot be obeyed, and nothing was started.
const exitUsage = 64

func main() {
	wiring, rest, err := wire(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "seckill-mutant: "+err.Error())
		os.Exit(exitUsage)
	}
	os.Exit(cli.Main(wiring, rest))
}

// wire reads the words before the product's own.
func wire(args []string) (w app.Wiring, rest []string, err error) {
	flags := flag.NewFlagSet("seckill-mutant", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "The product with one wrong design, for hotsku mutants.\n\n"+
			"  seckill-mutant --mutant NAME --mutant-file FILE ROLE …\n\n"+
			"NAME is one of %s.\nFILE takes a line each time the design did wrong.\n", strings.Join(wirings.Names(), ", "))
	}
	name := flags.String("mutant", "", "")
	file := flags.String("mutant-file", "", "")
	if err := flags.Parse(args); err != nil {
		return w, nil, err
	}
	if *name == "" || *file == "" {
		return w, nil, errors.New("--mutant and --mutant-file are required; --help lists the names")
	}
	fire, err := wirings.NoteIn(*file, *name)
	if err != nil {
		return w, nil, err
	}
	w, err = wirings.Wire(*name, faultpoint.Hit, fire)
	return w, flags.Args(), err
}
