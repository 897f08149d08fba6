package main

import (
	"bytes"
	"log/slog"
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

func TestFlagOverridesEnvironmentOverridesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flags.yaml")
	if err := os.WriteFile(file, []byte("listen: of the file\nallow-host: [a, b]\nhistory-age: 5m\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"MIRADOR_LISTEN": "of the environment", "MIRADOR_CONFIG": file}
	env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	fs, v := flagSet()
	if _, err := applySettings(fs, env, ""); err != nil {
		t.Fatal(err)
	}
	if v.listen != "of the environment" || strings.Join(v.hosts, " ") != "a b" || v.age != 5*time.Minute {
		t.Errorf("%+v", v)
	}
	fs, v = flagSet("--listen", "of the command line", "--allow-host", "c")
	if _, err := applySettings(fs, env, ""); err != nil {
		t.Fatal(err)
	}
	if v.listen != "of the command line" || strings.Join(v.hosts, " ") != "c" {
		t.Errorf("%+v", v)
	}
}

func noEnv(string) (string, bool) { return "", false }

func written(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flags.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEveryFlagOfServeCanBeSetInAFile(t *testing.T) {
	for line, want := range map[string]string{
		"max-objects: 1000000":                      "1000000",
		"max-objects: 1_000_000":                    "1000000",
		"max-objects: 2e6":                          "2000000",
		"max-bytes: 9223372036854775807":            "9223372036854775807",
		"max-cluster-objects: 4000000":              "4000000",
		"history-bytes: 16777216":                   "16777216",
		"history-age: 1h30m":                        "1h30m0s",
		"secrets: true":                             "true",
		"all-contexts: false":                       "false",
		"listen: 127.0.0.1:0":                       "127.0.0.1:0",
		`token-file: "123"`:                         "123",
		"context: eu":                               "[eu]",
		"context: eu,us":                            "[eu,us]",
		"context: [eu, us]":                         "[eu,us]",
		"context: []":                               "[]",
		"include:\n- pods\n- deployments.apps":      "[pods,deployments.apps]",
		"allow-host: [\"a,b\"]\n# a list is no CSV": `["a,b"]`,
	} {
		flags := newServe().Flags()
		if _, err := applySettings(flags, noEnv, written(t, line+"\n")); err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		name, _, _ := strings.Cut(line, ":")
		if got := flags.Lookup(name); got.Value.String() != want || !got.Changed {
			t.Errorf("%q sets %s to %s, want %s", line, name, got.Value, want)
		}
	}
}

func TestInvalidConfigFileIsAnError(t *testing.T) {
	for content, want := range map[string]string{
		"lisen: x":                 `there is no flag "lisen"; see mirador serve --help for the flags`,
		"maxObjects: 3":            `there is no flag "maxObjects"; did you mean "max-objects"?`,
		"config: other.yaml":       `there is no flag "config"`,
		"help: true":               `there is no flag "help"`,
		"history-age: never":       `history-age is the text "never"; a duration such as 30s, 10m or 1h30m is expected`,
		"history-age: 600":         "history-age is the number 600; a duration such as",
		"max-objects: many":        `max-objects is the text "many"; a whole number such as 1000000 is expected`,
		`max-objects: "1000"`:      `max-objects is the text "1000"; a whole number`,
		"max-objects: 1.5":         "max-objects is the number 1.5; a whole number",
		"max-objects: 1e999999999": "a whole number",
		"max-objects: 1e30":        "max-objects is the number 1e+30; a whole number",
		"max-objects:":             "max-objects is empty; a whole number",
		"max-objects: [1]":         "max-objects is a list; a whole number",
		"secrets: 1":               "secrets is the number 1; true or false is expected",
		`secrets: "true"`:          `secrets is the text "true"; true or false is expected`,
		"listen: 8090":             "listen is the number 8090; a text is expected",
		"listen: {port: 1}":        "listen is a mapping; a text is expected",
		"folder: yes":              "folder is true (put it in quotes if it is meant as a text); a text is expected",
		"context: [eu, 3]":         "context is a list; a text or a list of texts is expected",
		"context: 3":               "context is the number 3; a text or a list of texts is expected",
		"listen: a\nlisten: b":     `line 2: key "listen" already set in map`,
		"- no":                     "it is not a mapping; write a line for each flag",
		"listen: [":                "line 1",
	} {
		file := written(t, content+"\n")
		_, err := applySettings(newServe().Flags(), noEnv, file)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v\nwant the file and %q", content, err, want)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := applySettings(newServe().Flags(), noEnv, none); err == nil ||
		err.Error() != "read the config file: "+none+": no such file or directory; --config names it" {
		t.Errorf("a missing file: %v", err)
	}
}

func TestVariableOfTheWrongTypeIsAnError(t *testing.T) {
	vars := map[string]string{"MIRADOR_MAX_OBJECTS": "1e6", "MIRADOR_HISTORY_AGE": "", "MIRADOR_HELP": "true"}
	_, err := applySettings(newServe().Flags(), func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, "")
	want := `the environment variable MIRADOR_MAX_OBJECTS is "1e6"; a whole number such as 1000000 is expected`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAChangeOfTheConfigFileIsUsedOrNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flags.yaml")
	write := func(text string) {
		t.Helper()
		check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("listen: 127.0.0.1:0\nlog-level: warn\nmax-objects: 5\n")
	flags := newServe().Flags()
	check(t, flags.Parse([]string{"--max-objects", "7"}))
	config, err := applySettings(flags, noEnv, file)
	check(t, err)
	f := &serveFlags{logFormat: "text", logLevel: flags.Lookup("log-level").Value.String()}
	var out bytes.Buffer
	log, err := f.logger(&out)
	check(t, err)
	var reported bytes.Buffer
	c := &credentials{config: config, setConfig: f.use, log: slog.New(slog.NewTextHandler(&reported, nil))}
	expect := func(when, level string, says ...string) {
		t.Helper()
		reported.Reset()
		for range 3 {
			c.check()
		}
		text := reported.String()
		if strings.Count(text, "\n") != min(len(says), 1) {
			t.Errorf("%s: the log has %q", when, text)
		}
		for _, s := range says {
			if !strings.Contains(text, s) {
				t.Errorf("%s: the log has %q, without %q", when, text, s)
			}
		}
		if got := strings.ToLower(f.level.Level().String()); got != level {
			t.Errorf("%s: the level is %s, want %s", when, got, level)
		}
	}
	expect("unchanged", "warn")
	write("listen: 127.0.0.1:0\nlog-level: debug\nmax-objects: 6\n") // --max-objects counts
	expect("another level", "debug")
	write("listen: 127.0.0.1:1\nhistory-age: 30m\nlog-level: debug\n")
	expect("other flags", "debug", "only after a restart", "history-age, listen")
	write("listen: 127.0.0.1:1\nhistory-age: 30m\nlog-level: loud\n")
	expect("a level that does not exist", "debug", "debug, info, warn or error")
	write("listens: 127.0.0.1:1\n")
	expect("a flag that does not exist", "debug", "there is no flag")
	write("listen: 127.0.0.1:1\nhistory-age: 30m\n")
	expect("without a level", "info")
	log.Debug("hidden")
	log.Info("shown")
	if text := out.String(); strings.Contains(text, "hidden") || !strings.Contains(text, "shown") {
		t.Errorf("the log has %q", text)
	}
	f.logLevel = "loud"
	if _, err := f.logger(&out); err == nil || !strings.Contains(err.Error(), "--log-level is") {
		t.Errorf("--log-level loud: %v", err)
	}
}
