package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/settings"
)

// newConfig prints what a role would run with: one subcommand for each of
// roles, with the role's flags.
func newConfig(o *options, roles []*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Check a role's configuration and print it", Args: noArgs,
		Long: "config ROLE takes the flags of a role, reads the environment and the file, judges the whole as the role would,\n" +
			"and prints it as a configuration file: each value with its source, secrets masked. Nothing is started.",
		Example: "  seckill config access --config seckill.yaml",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, role := range roles {
		show := &cobra.Command{
			Use: role.Name(), Short: "Print the configuration of " + role.Name(), Args: noArgs,
			Annotations: map[string]string{sectionOf: role.Name()},
			RunE: func(cmd *cobra.Command, _ []string) error {
				sources, err := o.settle(cmd)
				if err != nil {
					return err
				}
				if err := o.check(role.Name()); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "# seckill %s: flag > environment > file > default\n", role.Name())
				return settings.Print(cmd.OutOrStdout(), cmd.Flags(), sources)
			},
		}
		show.Flags().AddFlagSet(role.Flags())
		cmd.AddCommand(show)
	}
	return cmd
}

// check judges what a role's command would, short of starting it.
func (o *options) check(command string) error {
	if _, err := o.logHandler(io.Discard); err != nil {
		return err
	}
	if _, err := o.idSeed(); err != nil {
		return err
	}
	return o.cfg.Validate(rolesOf(command)...)
}

// rolesOf are the roles that a command runs.
func rolesOf(command string) []app.Role {
	if command == commandAll {
		return app.Roles()
	}
	return []app.Role{app.Role(command)}
}

// sectionOf names the annotation of a command that reads another's section.
const sectionOf = "section"

// section is the command's part of the configuration file: the name of the
// command below seckill.
func section(cmd *cobra.Command) string {
	if s, ok := cmd.Annotations[sectionOf]; ok {
		return s
	}
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.Name()
}

// known are the keys of the configuration file: the flags of each command.
func known(root *cobra.Command) settings.Known {
	keys := make(settings.Known)
	var add func(name string, cmd *cobra.Command)
	add = func(name string, cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && f.Name != configFlag {
				keys[name] = append(keys[name], f.Name)
			}
		})
		for _, child := range cmd.Commands() {
			add(name, child)
		}
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() != "config" && cmd.Name() != "help" {
			add(cmd.Name(), cmd)
		}
	}
	return keys
}

// configFlag names the file; it is no key of the file itself.
const configFlag = "config"

// settle fills the flags from the environment and the file, and turns texts
// into what they stand for.
func (o *options) settle(cmd *cobra.Command) (map[string]settings.Source, error) {
	var file *settings.File
	path, given := os.LookupEnv(settings.Variable(configFlag))
	if f := cmd.Flags().Lookup(configFlag); f != nil && f.Changed {
		path, given = o.configFile, true
	}
	if given {
		var err error
		if file, err = settings.Read(path, known(cmd.Root())); err != nil {
			return nil, usageError{err}
		}
	}
	sources, err := settings.Fill(cmd.Flags(), section(cmd), os.LookupEnv, file)
	if err != nil {
		return nil, usageError{err}
	}
	delete(sources, configFlag)
	o.cfg.TokenKeys = nil
	for _, text := range o.tokenKeys {
		key, err := app.ParseTokenKey(text)
		if err != nil {
			return nil, usageError{err}
		}
		o.cfg.TokenKeys = append(o.cfg.TokenKeys, key)
	}
	return sources, nil
}

// secrets are the flags whose values may stand in a file of their own.
func secrets(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if settings.IsSecret(f) {
			names = append(names, f.Name)
		}
	})
	for _, child := range cmd.Commands() {
		names = append(names, secrets(child)...)
	}
	return names
}

// misspelt are variables that look like a flag's and are none.
func misspelt(root *cobra.Command, environ []string) []string {
	flags := make(map[string]string) // by variable
	for _, keys := range known(root) {
		for _, k := range keys {
			flags[settings.Variable(k)] = k
		}
	}
	flags[settings.Variable(configFlag)] = configFlag
	for _, k := range secrets(root) {
		flags[settings.FileVariable(k)] = k
	}
	names := slices.Sorted(maps.Values(flags))
	var lines []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		word, ours := strings.CutPrefix(name, settings.Prefix)
		if !ours || flags[name] != "" {
			continue
		}
		if near := settings.Nearest(strings.ToLower(strings.ReplaceAll(word, "_", "-")), names); near != "" {
			lines = append(lines, fmt.Sprintf("%s is not known; nearest is %s", name, settings.Variable(near)))
		}
	}
	return lines
}
