package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestVersionComesFromTheLinkerOrFromGo(t *testing.T) {
	inClone := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.modified", Value: "true"}}}
	for _, c := range []struct {
		name            string
		linked          build
		info            *debug.BuildInfo
		version, commit string
	}{
		{"a release", build{Version: "v1.2.3", Commit: "feed"}, inClone, "v1.2.3", "feed"},
		{"a clone", build{}, inClone, "(devel)", "0123abc, modified"},
		{"go install", build{}, &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3", "unknown"},
		{"nothing recorded", build{}, &debug.BuildInfo{}, "unknown", "unknown"},
	} {
		if got := c.linked.completed(c.info); got.Version != c.version || got.Commit != c.commit {
			t.Errorf("%s: version %q of commit %q, want %q of %q", c.name, got.Version, got.Commit, c.version, c.commit)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	b := thisBuild()
	if said := mustSay(t, "version"); !strings.Contains(said, "go:        "+b.Go+"\nplatform:  "+b.Platform+"\n") {
		t.Errorf("version printed %q", said)
	}
	var got build
	if err := json.Unmarshal([]byte(mustSay(t, "version", "-o", "json")), &got); err != nil || got != b {
		t.Errorf("version -o json is %+v (%v), want %+v", got, err, b)
	}
	if code, said := saidBy(t, "version", "-o", "xml"); code != exitUsage ||
		said != "mirador: --output is json, not \"xml\"\n" {
		t.Errorf("version -o xml: code %d, %q", code, said)
	}
}

func TestCompletionOfEveryShell(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if said := mustSay(t, "completion", shell); !strings.Contains(said, "__complete") {
			t.Errorf("completion %s is no script: %.100q", shell, said)
		}
	}
}

func TestManualsHaveEveryCommandAndFlag(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man1")
	mustSay(t, "man", folder)
	root := newRoot()
	want := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := manualName(cmd) + ".1"
		want[name] = true
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			return
		}
		page := string(b)
		for _, heading := range []string{".TH \"", "\n.SH NAME\n", "\n.SH SYNOPSIS\n", "\n.SH DESCRIPTION\n"} {
			if !strings.Contains(page, heading) {
				t.Errorf("%s has no %q", name, heading)
			}
		}
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "'") {
				t.Errorf("%s: man(1) takes %q for a macro", name, line)
			}
		}
		for _, below := range cmd.Commands() {
			if inManual(below) {
				walk(below)
			}
		}
	}
	walk(root)
	for _, flag := range []string{`\fB\-\-data\fP \fIfolder\fP`, `\fB\-\-listen\fP \fIaddress\fP`} {
		b, err := os.ReadFile(filepath.Join(folder, "mirador-serve.1"))
		if err != nil || !strings.Contains(string(b), flag) {
			t.Errorf("mirador-serve.1 has no %s (%v)", flag, err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != "mirador-completion.1" && !strings.HasPrefix(f.Name(), "mirador-completion-") && !want[f.Name()] {
			t.Errorf("%s is a page of no command", f.Name())
		}
	}
}
