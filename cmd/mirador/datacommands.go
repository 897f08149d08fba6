package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/daemon/disk"
)

func newData() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Show, verify and tidy a data folder of mirador serve",
		Long: `These commands work on the folder of mirador serve --data, while no daemon has it open. They need no
cluster. mirador status shows the size of the folder of a running daemon.`,
		Example: `  mirador data sizes /var/lib/mirador
  mirador data verify /var/lib/mirador
  mirador data drop /var/lib/mirador eu --yes`,
	}
	cmd.AddCommand(newDataSizes(), newDataVerify(), newDataCompact(), newDataDrop())
	return cmd
}

func newDataCompact() *cobra.Command {
	return &cobra.Command{
		Use:   "compact DIR",
		Short: "Free the space of what was dropped",
		Long: `Free the space of what was dropped from a data folder. A running daemon does so by itself, later. It goes resource
by resource and needs little space of its own.`,
		Example: `  mirador data compact /var/lib/mirador`,
		Args:    takesArguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withData(cmd, args[0], nil, func(ctx context.Context, d *disk.Disk) error {
				before := d.Health().Bytes
				if err := d.Compact(ctx); err != nil {
					return adviseDamage(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s had %s and has %s\n", args[0], bytesText(before), bytesText(d.Health().Bytes))
				return nil
			})
		},
	}
}

func newDataDrop() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop DIR CLUSTER",
		Short: "Remove a cluster and its history from a data folder",
		Long: `Remove everything of a cluster from a data folder, history included. The cluster itself is not changed: a daemon
that mirrors it lists it again, and keeps it again.`,
		Example: `  mirador data drop /var/lib/mirador eu        # shows what would be removed
  mirador data drop /var/lib/mirador eu --yes`,
		Args: takesArguments("DIR", "CLUSTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withData(cmd, args[0], nil, func(ctx context.Context, d *disk.Disk) error {
				return dropCluster(ctx, cmd, d, args[0], args[1], yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it; without this nothing is changed")
	return cmd
}

// dropCluster removes a cluster and frees its space.
func dropCluster(ctx context.Context, cmd *cobra.Command, d *disk.Disk, dir, name string, yes bool) error {
	stored, err := d.Clusters()
	if err != nil {
		return adviseDamage(err)
	}
	known := false
	for _, c := range stored {
		known = known || c.Name == name
	}
	if !known {
		return notFoundError{fmt.Errorf("the data folder %s has no cluster %q; mirador data sizes %s shows what it has", dir,
			name, dir)}
	}
	if !yes {
		resources, err := d.Resources(name)
		if err != nil {
			return adviseDamage(err)
		}
		return usageError{fmt.Errorf("this would remove %d resources of cluster %s and their history from %s; to do so, "+
			"add --yes", len(resources), name, dir)}
	}
	if err := d.DropCluster(name); err != nil {
		return adviseDamage(err)
	}
	if err := d.Compact(ctx); err != nil {
		return fmt.Errorf("cluster %s was dropped, and its space cannot be freed: %w", name, adviseDamage(err))
	}
	fmt.Fprintf(cmd.OutOrStdout(), "dropped cluster %s\n", name)
	return nil
}

// withData calls do with an existing data folder that no daemon has open.
func withData(cmd *cobra.Command, dir string, key []byte, do func(ctx context.Context, d *disk.Disk) error) error {
	if err := checkDataFolder(dir); err != nil {
		return notFoundError{err}
	}
	d, err := disk.Open(dir, disk.Options{Key: key, Logger: slog.New(slog.DiscardHandler)})
	if errors.Is(err, disk.ErrInUse) {
		return fmt.Errorf("the data folder %s is in use, probably by mirador serve; stop that first, or see its size with "+
			"mirador status", dir)
	}
	if err != nil {
		return adviseDamage(err)
	}
	return errors.Join(do(cmd.Context(), d), d.Close())
}

// checkDataFolder returns an error unless the folder is one that mirador serve has made: opening another one would make
// it a data folder.
func checkDataFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no folder %s; name the one of mirador serve --data", dir)
	case err != nil:
		return plainFileError(err)
	case !info.IsDir():
		return fmt.Errorf("%s is a file; name the folder of mirador serve --data", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "format")); err != nil {
		return fmt.Errorf("%s is not a data folder; name the one of mirador serve --data", dir)
	}
	return nil
}

// takesArguments checks the number of arguments.
func takesArguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usageError{fmt.Errorf("%s takes %d arguments, and got %d; see %s --help", cmd.UseLine(), len(names), len(args),
			cmd.CommandPath())}
	}
}

// bytesText returns a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
