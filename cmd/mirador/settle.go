package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// settle fills the flags that were not given from the environment and from a file.
func settle(flags *pflag.FlagSet, env func(string) (string, bool), file string) error {
	if v, ok := env(variable("config")); ok && file == "" {
		file = v
	}
	given := map[string]any{}
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the flags: %w", err)
		}
		if err := yaml.UnmarshalStrict(b, &given); err != nil {
			return fmt.Errorf("read the flags in %s: %w", file, err)
		}
	}
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		v, inFile := given[f.Name]
		delete(given, f.Name)
		text, inEnv := env(variable(f.Name))
		switch {
		case failed != nil || f.Changed || !inFile && !inEnv:
			return
		case !inEnv:
			text = flagText(v)
		}
		if err := flags.Set(f.Name, text); err != nil {
			failed = fmt.Errorf("%s: %w", f.Name, err)
		}
	})
	if failed == nil && len(given) > 0 {
		var names []string
		for name := range given {
			names = append(names, name)
		}
		slices.Sort(names)
		failed = fmt.Errorf("%s has no flag of ours: %s; see mirador serve --help", file, strings.Join(names, ", "))
	}
	return failed
}

// variable is a flag's name in the environment.
func variable(flag string) string {
	return "MIRADOR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagText gives a value of a YAML file as it would stand on the command line.
func flagText(v any) string {
	if list, ok := v.([]any); ok {
		var parts []string
		for _, p := range list {
			parts = append(parts, fmt.Sprint(p))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}
