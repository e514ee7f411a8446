package main

import (
	"github.com/hotsku/hotsku/stack"
	"github.com/spf13/cobra"
)

func newDown() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a kept stack and remove its data",
		Long:  "Stop a kept stack and remove its data. Stacks whose owner died are removed as well.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := (stack.Options{Name: name, Keep: true}).Validate(); err != nil {
				return usageError{err}
			}
			base, err := stack.DefaultBase()
			if err != nil {
				return err
			}
			if err := cleanLeftovers(cmd, base); err != nil {
				return err
			}
			if err := stack.RemoveKept(cmd.Context(), base, name); err != nil {
				return err
			}
			cmd.PrintErrf("stack %s is down\n", name)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "stack", "default", "name of the stack")
	return cmd
}

func cleanLeftovers(cmd *cobra.Command, base string) error {
	removed, err := stack.CleanLeftovers(cmd.Context(), base)
	for _, name := range removed {
		cmd.PrintErrf("removed %s, left behind by a process that died\n", name)
	}
	return err
}
