package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// form is how objects are shown.
type form uint8

const (
	asTable form = iota
	asWide
	asJSON
	asYAML
	asName
	asPath
)

// outputFlags say how objects are shown.
type outputFlags struct {
	output        string
	noHeaders     bool
	managedFields bool

	form form
	path *jsonpath.JSONPath
}

func (o *outputFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "`form` to show: json, yaml, wide, name or jsonpath=TEMPLATE (default: a table)")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave the heads of tables out")
	cmd.Flags().BoolVar(&o.managedFields, "show-managed-fields", false, "keep metadata.managedFields in json and yaml")
	complete(cmd, "output", cobra.FixedCompletions([]string{"json", "yaml", "wide", "name", "jsonpath="}, cobra.ShellCompDirectiveNoFileComp))
}

// parse reads the form. Those that a command cannot give are refused.
func (o *outputFlags) parse(refused ...form) error {
	template := ""
	switch name, rest, isPath := strings.Cut(o.output, "="); {
	case o.output == "":
		o.form = asTable
	case o.output == "wide":
		o.form = asWide
	case o.output == "json":
		o.form = asJSON
	case o.output == "yaml":
		o.form = asYAML
	case o.output == "name":
		o.form = asName
	case isPath && name == "jsonpath" && rest != "":
		o.form, template = asPath, rest
	default:
		return usagef("--output is json, yaml, wide, name or jsonpath=TEMPLATE, not %q", o.output)
	}
	for _, f := range refused {
		if f == o.form {
			return usagef("this command has no --output %s; see its --help", o.output)
		}
	}
	if o.form != asPath {
		return nil
	}
	if !strings.Contains(template, "{") {
		template = "{" + template + "}"
	}
	o.path = jsonpath.New("output").AllowMissingKeys(true)
	if err := o.path.Parse(template); err != nil {
		return usagef("the template of jsonpath is not usable: %w; write it as jsonpath='{.items[*].metadata.name}'", err)
	}
	return nil
}

// table reports whether the form has rows.
func (o *outputFlags) table() bool { return o.form == asTable || o.form == asWide }

// accept is the form that the server is asked for.
func (o *outputFlags) accept() string {
	switch o.form {
	case asTable, asWide:
		return acceptTable
	case asName:
		return acceptMetadata
	}
	return acceptJSON
}

// restore reads an object of a list as it would stand alone: items of a list need not say what
// they are.
func (o *outputFlags) restore(m *mapping, item []byte) (map[string]any, error) {
	var obj map[string]any
	if err := utiljson.Unmarshal(item, &obj); err != nil {
		return nil, fmt.Errorf("read an object of the answer: %w", err)
	}
	if obj == nil {
		return nil, fmt.Errorf("the answer has a %s that is no object", m)
	}
	obj["apiVersion"], obj["kind"] = m.gvk.GroupVersion().String(), m.gvk.Kind
	if meta, ok := obj["metadata"].(map[string]any); ok && !o.managedFields {
		delete(meta, "managedFields")
	}
	return obj, nil
}

// list is several objects as one.
func listOf(objs []any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": objs}
}

// document writes one value as JSON, as YAML or by the template.
func (o *outputFlags) document(w io.Writer, v any) error {
	switch o.form {
	case asYAML:
		b, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		_, err = w.Write(b)
		return err
	case asPath:
		if err := o.path.Execute(w, v); err != nil {
			return fmt.Errorf("apply the template of jsonpath: %w", err)
		}
		return nil
	}
	return writeIndented(w, v)
}

func writeIndented(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// plain is a value of ours as the maps that a template can walk.
func plain(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = utiljson.Unmarshal(b, &out)
	return out, err
}
