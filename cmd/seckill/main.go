// Command seckill is the flash-sale order system; package cli says what it
// can do, and its exit codes.
package main

import (
	"os"

	"github.com/hotsku/hotsku/cmd/seckill/cli"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/faultpoint"
)

func main() { os.Exit(cli.Main(app.DefaultWiring(faultpoint.Hit), os.Args[1:])) }
