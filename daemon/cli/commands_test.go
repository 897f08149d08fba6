package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryCommandHasHelpWithExamplesAndExitCodes(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" || !strings.Contains(c.Long, "Exit codes: 0") {
			t.Errorf("the help of %s is incomplete", c.CommandPath())
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	for _, c := range Commands() {
		look(c)
		if s := run(t, "", c.Name(), "--help"); s.code != 0 || !strings.Contains(s.out, "Examples:") {
			t.Errorf("mirador %s --help: %+v", c.Name(), s)
		}
	}
}

func TestHelpAndCompletionHaveOnlyWhatTheCommandTakes(t *testing.T) {
	help := ok(t, "", "history", "--help")
	for _, refused := range []string{"--where", "go-template", "custom-columns", "wide, name"} {
		if strings.Contains(help, refused) {
			t.Errorf("the help of history has %q:\n%s", refused, help)
		}
	}
	offered := ok(t, "", "__complete", "count", "pods", "-o", "")
	if !strings.HasPrefix(offered, "json\nyaml\njsonpath=\njsonpath-file=\n:") {
		t.Errorf("the completion of count has\n%s", offered)
	}
}

func TestExitCodes(t *testing.T) {
	base := errors.New("x")
	for want, err := range map[int]error{0: nil, 1: base, 2: fmt.Errorf("a: %w", usagef("x")),
		3: fmt.Errorf("a: %w", notFound(base)), 4: fmt.Errorf("a: %w", unreachable(base))} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v has exit code %d, want %d", err, got, want)
		}
	}
}
