package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/loadgen/summary"
)

func newMerge() *cobra.Command {
	var out string
	var json bool
	cmd := &cobra.Command{
		Use:   "merge DIR…",
		Short: "Add up the shards of one load",
		Long: `Add up what the shards of one load left (hotsku load --shard I/N --out DIR): counts, histograms and
histories. Percentiles are those of all requests together. Refused are shards that are missing or
double, have different plans, or did not run at the same time.

Exit codes: those of hotsku load for the whole; 2 also if the folders cannot be merged.`,
		Example: `  hotsku load --shard 1/2 --out a http://127.0.0.1:8080/ & hotsku load --shard 2/2 --out b http://127.0.0.1:8080/; wait
  hotsku merge --out both a b`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageError{errors.New("merge takes the folders that hotsku load --shard left, got none")}
			case out == "":
				return usageError{errors.New("merge needs --out, a new or empty folder")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			sum, err := summary.Merge(args, out)
			if err != nil {
				return err
			}
			o := loadFlags{json: json}
			return report(cmd.OutOrStdout(), sum, o.format(), out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "new or empty folder for the merged run")
	cmd.Flags().BoolVar(&json, "json", false, "print the summary as JSON")
	return cmd
}
