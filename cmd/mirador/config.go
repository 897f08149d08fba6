package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/mirador-k8s/mirador/daemon/cli"
)

// configFile is the file of --config.
type configFile struct {
	path  string
	flags *pflag.FlagSet
	given map[string]any
	// overridden are the flags on the command line and in the environment.
	overridden map[string]bool
}

// changes reads the file again and returns what has changed since: flags by name, nil for those that are no longer in
// the file. Flags that are overridden are left out.
func (c *configFile) changes() (map[string]any, error) {
	given, err := readConfig(c.path)
	if err != nil {
		return nil, err
	}
	if err := checkKeys(c.flags, given, c.path); err != nil {
		return nil, err
	}
	changed := map[string]any{}
	c.flags.VisitAll(func(f *pflag.Flag) {
		if !c.overridden[f.Name] && !reflect.DeepEqual(given[f.Name], c.given[f.Name]) {
			changed[f.Name] = given[f.Name]
		}
	})
	c.given = given
	return changed, nil
}

// applySettings sets the flags that are not on the command line from the environment and from a file, which it returns,
// or nil without one. An empty variable counts as not set.
func applySettings(flags *pflag.FlagSet, env func(string) (string, bool), file string) (*configFile, error) {
	if v, ok := env(variable("config")); ok && file == "" {
		file = v
	}
	given, err := readConfig(file)
	if err != nil {
		return nil, err
	}
	if err := checkKeys(flags, given, file); err != nil {
		return nil, err
	}
	config := &configFile{path: file, flags: flags, given: given, overridden: map[string]bool{}}
	var failed []error
	flags.VisitAll(func(f *pflag.Flag) {
		value, inFile := given[f.Name]
		text, _ := env(variable(f.Name))
		config.overridden[f.Name] = f.Changed || text != ""
		switch {
		case f.Changed || !settable(f):
		case text != "":
			if err := flags.Set(f.Name, text); err != nil {
				failed = append(failed, fmt.Errorf("the environment variable %s is %q; %s is expected", variable(f.Name),
					text, cli.Expected(f)))
			}
		case inFile:
			if !setFromFile(flags, f, value) {
				failed = append(failed, fmt.Errorf("the config file %s: %s is %s; %s is expected", file, f.Name,
					shown(value), cli.Expected(f)))
			}
		}
	})
	if file == "" {
		config = nil
	}
	return config, errors.Join(failed...)
}

// settable reports whether a flag may be set by the environment or the file. Those cannot name another file, and help
// is only for the command line.
func settable(f *pflag.Flag) bool { return f.Name != "config" && f.Name != "help" }

// readConfig reads flags from a YAML file. "" means no file.
func readConfig(file string) (map[string]any, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the config file: %w; --config names it", plainFileError(err))
	}
	var given map[string]any
	// Numbers keep their notation: a float64 would print 1000000 as 1e+06.
	if err := yaml.UnmarshalStrict(b, &given,
		func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
		text := strings.Join(strings.Fields(strings.NewReplacer("error converting YAML to JSON: ", "", "yaml: ", "",
			"unmarshal errors: ", "").Replace(err.Error())), " ")
		if strings.Contains(text, "cannot unmarshal") {
			text = "it is not a mapping"
		}
		return nil,
			fmt.Errorf("the config file %s cannot be used: %s; write a line for each flag, such as \"listen: 127.0.0.1:8090\"",
				file, strings.TrimPrefix(text, "unmarshal errors: "))
	}
	return given, nil
}

// plainFileError removes the name of the system call from a file error.
func plainFileError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}

// checkKeys returns an error for keys that are not flags.
func checkKeys(flags *pflag.FlagSet, given map[string]any, file string) error {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if f := flags.Lookup(key); f != nil && settable(f) {
			continue
		}
		hint := "see mirador serve --help for the flags"
		if instead, ok := insteadOf[key]; ok {
			hint = instead
		}
		flags.VisitAll(func(f *pflag.Flag) {
			if settable(f) && bareName(f.Name) == bareName(key) {
				hint = fmt.Sprintf("did you mean %q?", f.Name)
			}
		})
		return fmt.Errorf("the config file %s: there is no flag %q; %s", file, key, hint)
	}
	return nil
}

// insteadOf has what to use instead of flags of kube-apiserver that the daemon does not have.
var insteadOf = map[string]string{
	"oidc-issuer-url":      "name the OIDC issuer in the file of --authentication-config",
	"oidc-client-id":       "name the client ID as an audience in the file of --authentication-config",
	"oidc-username-claim":  "map the claim in the file of --authentication-config",
	"oidc-groups-claim":    "map the claim in the file of --authentication-config",
	"tls-cert-file":        "use --tls-cert",
	"tls-private-key-file": "use --tls-key",
	"authorization-mode":   "use --authorization",
	"anonymous-auth": "requests without credentials may only read what a role of --access-file gives to the group " +
		"system:unauthenticated",
}

// wrongFlag returns a readable error for an error in the flags.
func wrongFlag(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if instead, ok := insteadOf[e.GetSpecifiedName()]; ok {
			err = fmt.Errorf("%w; %s", err, instead)
		}
	}
	return cli.WrongFlag(cmd, err)
}

// bareName normalizes the spelling of a flag: maxObjects, max_objects, --max-objects.
func bareName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return "MIRADOR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// shown formats a value of a file for an error.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case string:
		return fmt.Sprintf("the text %q", v)
	case json.Number:
		return fmt.Sprintf("the number %s", v)
	case bool:
		return fmt.Sprintf("%t (put it in quotes if it is meant as a text)", v)
	case []any:
		return "a list"
	}
	return "a mapping"
}

// setFromFile sets a flag to a value of a file, and reports whether the value has the flag's type.
func setFromFile(flags *pflag.FlagSet, f *pflag.Flag, v any) bool {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		texts, ok := textsOf(v)
		if !ok || list.Replace(texts) != nil {
			return false
		}
		f.Changed = true
		return true
	}
	var text string
	switch v := v.(type) {
	case string:
		if f.Value.Type() == "string" || f.Value.Type() == "duration" {
			return flags.Set(f.Name, v) == nil
		}
		return false
	case bool:
		if f.Value.Type() != "bool" {
			return false
		}
		text = fmt.Sprint(v)
	case json.Number:
		var whole bool
		if text, whole = wholeNumber(v); !whole || f.Value.Type() != "int" && f.Value.Type() != "int64" {
			return false
		}
	default:
		return false
	}
	return flags.Set(f.Name, text) == nil
}

// wholeNumber expands a whole number such as 1e6.
func wholeNumber(n json.Number) (string, bool) {
	const most = 30 // digits, more than any flag takes; a large exponent would fill the memory
	f, _, err := big.ParseFloat(n.String(), 10, 128, big.ToNearestEven)
	if err != nil || !f.IsInt() || f.MantExp(nil) > most*4 {
		return "", false
	}
	return f.Text('f', 0), true
}

// textsOf returns the texts of a text or a list of texts.
func textsOf(v any) ([]string, bool) {
	if text, ok := v.(string); ok {
		return strings.Split(text, ","), true
	}
	list, ok := v.([]any)
	var out []string
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText
		out = append(out, text)
	}
	return out, ok
}
