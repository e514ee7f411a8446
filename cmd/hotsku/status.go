package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/hotsku/hotsku/stack"
	"github.com/spf13/cobra"
)

func newStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the stacks on this machine and their servers",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := stack.DefaultBase()
			if err != nil {
				return err
			}
			if err := cleanLeftovers(cmd, base); err != nil {
				return err
			}
			infos, err := stack.List(base)
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(infos)
			}
			return printStatus(cmd.OutOrStdout(), infos)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printStatus(w io.Writer, infos []stack.Info) error {
	if len(infos) == 0 {
		_, err := fmt.Fprintln(w, "no stacks")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STACK\tOWNER\tSERVER\tSTATE\tADDRESS\tLOG")
	for _, info := range infos {
		owner := "kept"
		if !info.Kept {
			owner = fmt.Sprintf("pid %d", info.OwnerPID)
		}
		for _, s := range info.Servers {
			state := "stopped"
			if s.PID != 0 {
				state = fmt.Sprintf("pid %d", s.PID)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", info.Name, owner, s.Name, state, s.Addr, s.LogPath)
		}
	}
	return t.Flush()
}
