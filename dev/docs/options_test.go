package docs

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mirador-k8s/mirador/daemon/cli"
)

var (
	optionFunc  = regexp.MustCompile(`^pkg (\S+), func (\w+)[\[(].* (?:\w*Option|Scope)$`)
	optionField = regexp.MustCompile(`^pkg (\S+), type (\w*Options)(?:\[.*\])? struct, (\w+) `)
	row         = regexp.MustCompile("^\\| `([^`]+)` \\|")
)

// api.txt has every exported name; another test compares it with the code.
func TestThePageHasEveryOption(t *testing.T) {
	want := map[string][]string{}
	for line := range strings.Lines(readFile(t, "api.txt")) {
		line = strings.TrimSpace(line)
		if m := optionFunc.FindStringSubmatch(line); m != nil {
			want[m[1]] = append(want[m[1]], m[2])
		} else if m := optionField.FindStringSubmatch(line); m != nil {
			want[m[1]] = append(want[m[1]], m[2]+"."+m[3])
		}
	}
	if len(want["informer"]) < 10 {
		t.Fatalf("api.txt has %d options of informer; the test reads it wrongly", len(want["informer"]))
	}
	for _, pkg := range slices.Sorted(maps.Keys(want)) {
		compare(t, "## "+pkg, want[pkg], rows(t, "## "+pkg))
	}
}

func TestThePageHasEveryFlagOfServe(t *testing.T) {
	compare(t, "## mirador serve", flagsOf(t, "serve"), rows(t, "## mirador serve"))
}

func TestThePageHasEveryFlagOfData(t *testing.T) {
	var want []string
	for _, command := range []string{"sizes", "verify", "compact", "drop"} {
		want = append(want, flagsOf(t, "data", command)...)
	}
	compare(t, "## mirador data", want, rows(t, "## mirador data"))
}

// flagsOf returns the flags in the help of a command.
func flagsOf(t *testing.T, command ...string) (flags []string) {
	t.Helper()
	out, err := exec.Command(program(t), append(command, "--help")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[\w-]+)`).FindAllStringSubmatch(string(out), -1) {
		if m[1] != "--help" {
			flags = append(flags, m[1])
		}
	}
	return flags
}

func TestThePageHasEveryFlagOfTheOtherCommands(t *testing.T) {
	users := map[string][]string{}
	var walk func(cmd *cobra.Command, parent string)
	walk = func(cmd *cobra.Command, parent string) {
		name := strings.TrimSpace(parent + " " + cmd.Name())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden {
				users["--"+f.Name] = append(users["--"+f.Name], name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub, name)
		}
	}
	for _, cmd := range cli.Commands() {
		walk(cmd, "")
	}
	var want []string
	for flag, commands := range users {
		slices.Sort(commands)
		want = append(want, flag+" | "+strings.Join(commands, ", "))
	}
	var got []string
	for _, line := range section(t, "## Other commands") {
		if cells := strings.Split(line, "|"); row.MatchString(line) && len(cells) > 3 {
			got = append(got, strings.Trim(strings.TrimSpace(cells[1]), "`")+" | "+strings.TrimSpace(cells[2]))
		}
	}
	compare(t, "## Other commands", want, got)
}

func compare(t *testing.T, where string, want, got []string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("docs/options.md, %q has no line for %s", where, w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("docs/options.md, %q has %s, which the code does not have", where, g)
		}
	}
}

// section returns the lines of docs/options.md below a heading.
func section(t *testing.T, heading string) []string {
	t.Helper()
	_, rest, found := strings.Cut(readFile(t, "docs/options.md"), "\n"+heading+"\n")
	if !found {
		t.Errorf("docs/options.md has no heading %q", heading)
		return nil
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return strings.Split(text, "\n")
}

// rows returns the first cells of the tables below a heading.
func rows(t *testing.T, heading string) (names []string) {
	t.Helper()
	for _, line := range section(t, heading) {
		if m := row.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}
