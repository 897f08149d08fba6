package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan returns the command that writes the manual pages. It is hidden: only packages of the program need it.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write the manual pages into a folder",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder of the manual pages: %w", err)
			}
			return writeManuals(cmd.Root(), args[0])
		},
	}
}

// writeManuals writes the page of a command and of each command below it that help shows.
func writeManuals(cmd *cobra.Command, folder string) error {
	var page strings.Builder
	writeManual(&page, cmd)
	path := filepath.Join(folder, manualName(cmd)+".1")
	if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
		return fmt.Errorf("write a manual page: %w", err)
	}
	for _, below := range cmd.Commands() {
		if !inManual(below) {
			continue
		}
		if err := writeManuals(below, folder); err != nil {
			return err
		}
	}
	return nil
}

func inManual(cmd *cobra.Command) bool { return cmd.IsAvailableCommand() && cmd.Name() != "help" }

func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// writeManual writes the page of one command in the macros of man(7).
func writeManual(w io.Writer, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	title := strings.ToUpper(manualName(cmd))
	fmt.Fprintf(w, ".TH \"%s\" \"1\" \"\" \"mirador\" \"Mirador\"\n", roff(title))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(manualName(cmd)), roff(cmd.Short))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	fmt.Fprintf(w, ".SH DESCRIPTION\n%s", roffText(long))
	writeManualFlags(w, "OPTIONS", cmd.NonInheritedFlags())
	writeManualFlags(w, "INHERITED OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(w, ".SH EXAMPLES\n.nf\n%s.fi\n", roffText(cmd.Example))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, manualName(cmd.Parent()))
	}
	for _, below := range cmd.Commands() {
		if inManual(below) {
			others = append(others, manualName(below))
		}
	}
	if len(others) == 0 {
		return
	}
	fmt.Fprint(w, ".SH SEE ALSO\n")
	for i, other := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		fmt.Fprintf(w, ".BR %s (1)%s\n", roff(other), end)
	}
}

func writeManualFlags(w io.Writer, heading string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", heading)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			value = " \\fI" + roff(value) + "\\fP"
		}
		fmt.Fprintf(w, ".TP\n\\fB%s\\fP%s\n%s", roff(name), value, roffText(usage))
	})
}

// roff escapes text within a line. A hyphen would otherwise not be the character that a shell understands.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, `-`, `\-`, `"`, `\(dq`).Replace(text)
}

// roffText escapes lines of text. A dot or an apostrophe at the start of a line would be a macro.
func roffText(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		line = roff(strings.TrimRight(line, " "))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		fmt.Fprintln(&out, line)
	}
	return out.String()
}
