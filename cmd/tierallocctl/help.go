package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const helpHelp = `Explain a command, or one of the library's TA_ variables: its purpose, the
values that it accepts, its default and an example. Without an argument the command lists all
commands.`

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND|VARIABLE]",
		Short:   "Explain a command, or a TA_ variable",
		Long:    helpHelp,
		Example: "  tierallocctl help run\n  tierallocctl help TA_FAST_HARD",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Root().Help()
			}
			return help(cmd, args[0])
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string,
			cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(commandNames(cmd.Root()), settingNames()...),
				cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// help explains the command or the variable called name.
func help(cmd *cobra.Command, name string) error {
	for _, c := range cmd.Root().Commands() {
		if c.Name() == name {
			c.InitDefaultHelpFlag()
			return c.Help()
		}
	}
	for _, s := range settings() {
		if s.name == name {
			s.explain(cmd.OutOrStdout())
			return nil
		}
	}
	near := nearest(name, commandNames(cmd.Root()))
	if near == "" {
		near = nearestSetting(strings.ToUpper(name), settingNames())
	}
	text := fmt.Sprintf("help: there is no command or variable %q", name)
	if near != "" {
		text += "; did you mean " + near + "?"
	}
	return usage("%s", text)
}

// commandNames returns the names of all commands that are not hidden.
func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// explain writes the documentation of a variable.
func (s setting) explain(w io.Writer) {
	d := docOf(s.name)
	fmt.Fprintf(w, "%s: %s\n\n", s.name, d.text)
	for _, line := range [][2]string{
		{"values", s.accepts}, {"default", s.fallback}, {"example", s.name + "=" + d.example},
		{"flag", "--" + s.flag() + " of tierallocctl run and tierallocctl verify"},
	} {
		fmt.Fprintf(w, "  %-9s%s\n", line[0], line[1])
	}
}
