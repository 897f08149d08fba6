package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets these in releases and images; other builds use what Go records.
var version, commit string

// build describes this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return b.completed(info)
}

// completed fills what the linker has not set. `go install …@latest` records a version and no commit, a build in a
// clone a commit.
func (b build) completed(info *debug.BuildInfo) build {
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "unknown"
	}
	if b.Commit != "" {
		return b
	}
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	switch {
	case b.Commit == "":
		b.Commit = "unknown"
	case changed:
		b.Commit += ", modified"
	}
	return b
}

func newVersion() *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Long:  "Show the version of this program, the commit and the Go version that it was built from, and its platform.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, out := thisBuild(), cmd.OutOrStdout()
			switch format {
			case "":
				_, err := fmt.Fprintf(out, "version:   %s\ncommit:    %s\ngo:        %s\nplatform:  %s\n",
					b.Version, b.Commit, b.Go, b.Platform)
				return err
			case "json":
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				return e.Encode(b)
			}
			return usageError{fmt.Errorf("--output is json, not %q", format)}
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "json")
	return cmd
}
