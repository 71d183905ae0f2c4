package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tieralloc/internal/version"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the library built with it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "tieralloc", version.Number)
			return err
		},
	}
}
