package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func flagSet(args ...string) (*pflag.FlagSet, *struct {
	listen string
	hosts  []string
	age    time.Duration
	config string
}) {
	var v struct {
		listen string
		hosts  []string
		age    time.Duration
		config string
	}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	fs.StringVar(&v.listen, "listen", "default", "")
	fs.StringSliceVar(&v.hosts, "allow-host", nil, "")
	fs.DurationVar(&v.age, "history-age", time.Minute, "")
	fs.StringVar(&v.config, "config", "", "")
	if err := fs.Parse(args); err != nil {
		panic(err)
	}
	return fs, &v
}

func TestAFlagCountsBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flags.yaml")
	if err := os.WriteFile(file, []byte("listen: of the file\nallow-host: [a, b]\nhistory-age: 5m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"MIRADOR_LISTEN": "of the environment", "MIRADOR_CONFIG": file}
	env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	fs, v := flagSet()
	if err := settle(fs, env, ""); err != nil {
		t.Fatal(err)
	}
	if v.listen != "of the environment" || strings.Join(v.hosts, " ") != "a b" || v.age != 5*time.Minute {
		t.Errorf("%+v", v)
	}
	fs, v = flagSet("--listen", "of the command line", "--allow-host", "c")
	if err := settle(fs, env, ""); err != nil {
		t.Fatal(err)
	}
	if v.listen != "of the command line" || strings.Join(v.hosts, " ") != "c" {
		t.Errorf("%+v", v)
	}
}

func TestWhatNoFlagUnderstandsIsSaid(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{
		"lisen: x\n":             "lisen",
		"history-age: never\n":   "history-age",
		"listen: a\nlisten: b\n": "listen",
		"- no\n":                 "read the flags",
	} {
		file := filepath.Join(dir, "flags.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		fs, _ := flagSet()
		if err := settle(fs, func(string) (string, bool) { return "", false }, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
	fs, _ := flagSet()
	if err := settle(fs, func(string) (string, bool) { return "", false }, filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there passes")
	}
}
