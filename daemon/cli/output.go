package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
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
	asPath     // jsonpath
	asTemplate // go-template
	asColumns
)

// allForms are the forms that --output can name, and what it looks like.
var allForms = []struct {
	form             form
	name, completion string
}{{asJSON, "json", "json"}, {asYAML, "yaml", "yaml"}, {asWide, "wide", "wide"}, {asName, "name", "name"},
	{asPath, "jsonpath=TEMPLATE", "jsonpath="}, {asTemplate, "go-template=TEMPLATE", "go-template="},
	{asColumns, "custom-columns=HEAD:PATH,…", "custom-columns="}}

// outputFlags select how objects are shown.
type outputFlags struct {
	output        string
	noHeaders     bool
	managedFields bool
	refused       []form // what the command does not support

	form    form
	printer printers.ResourcePrinter // of objects; nil for tables
	path    *printers.JSONPathPrinter
	columns []column
}

// add adds the flags of a command that supports all forms but those that are refused.
func (o *outputFlags) add(cmd *cobra.Command, refused ...form) {
	o.refused = refused
	var completions, files []string
	for _, f := range allForms {
		if slices.Contains(refused, f.form) {
			continue
		}
		completions = append(completions, f.completion)
		if name, ok := strings.CutSuffix(f.completion, "="); ok {
			files = append(files, name+"-file=")
		}
	}
	reads := "read the template from a file"
	if len(files) == 1 {
		reads = "reads the template from a file"
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "",
		"`form` to show: "+o.forms()+"; "+enumerated(files, "and")+" "+reads+" (default: a table)")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave the heads of tables out")
	cmd.Flags().BoolVar(&o.managedFields, "show-managed-fields", false, "keep metadata.managedFields in json and yaml")
	complete(cmd, "output", cobra.FixedCompletions(append(completions, files...),
		cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// forms lists the forms that the command supports.
func (o *outputFlags) forms() string {
	var names []string
	for _, f := range allForms {
		if !slices.Contains(o.refused, f.form) {
			names = append(names, f.name)
		}
	}
	return enumerated(names, "or")
}

// enumerated joins words as in "a, b and c".
func enumerated(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// parse parses --output. It refuses forms that the command does not support.
func (o *outputFlags) parse() error {
	name, template, _ := strings.Cut(o.output, "=")
	if kind, ok := strings.CutSuffix(name, "-file"); ok {
		b, err := readSmall(template)
		if err != nil {
			return usagef("read the template of --output %s: %w", name, err)
		}
		name, template = kind, string(b)
	}
	if err := o.choose(name, template); err != nil {
		return err
	}
	if slices.Contains(o.refused, o.form) {
		return usagef("--output is %s, not %q", o.forms(), o.output)
	}
	if (o.form == asJSON || o.form == asYAML) && !o.managedFields {
		o.printer = &printers.OmitManagedFieldsPrinter{Delegate: o.printer}
	}
	return nil
}

// choose sets the printer of a form.
func (o *outputFlags) choose(name, template string) (err error) {
	withTemplate := name == "jsonpath" || name == "go-template" || name == "custom-columns"
	if withTemplate != (template != "") || !withTemplate && strings.Contains(o.output, "=") {
		return usagef("--output is %s, not %q", o.forms(), o.output)
	}
	switch name {
	case "":
		o.form = asTable
	case "wide":
		o.form = asWide
	case "json":
		o.form, o.printer = asJSON, &printers.JSONPrinter{}
	case "yaml":
		o.form, o.printer = asYAML, &printers.YAMLPrinter{}
	case "name":
		o.form, o.printer = asName, &printers.NamePrinter{ShortOutput: true}
	case "jsonpath":
		if o.form = asPath; !strings.Contains(template, "{") {
			template = "{" + template + "}"
		}
		if o.path, err = printers.NewJSONPathPrinter(template); err != nil {
			return usagef("the template of jsonpath is not usable: %w; write it as jsonpath='{.items[*].metadata.name}'", err)
		}
		o.path.AllowMissingKeys(true)
		o.printer = o.path
	case "go-template":
		o.form = asTemplate
		if o.printer, err = printers.NewGoTemplatePrinter([]byte(template)); err != nil {
			return usagef("the template is not usable: %w; write it as "+
				"go-template='{{range .items}}{{.metadata.name}} {{end}}'", err)
		}
	case "custom-columns":
		o.form = asColumns
		o.columns, err = parseColumns(template)
		return err
	default:
		return usagef("--output is %s, not %q", o.forms(), o.output)
	}
	return nil
}

// table reports whether the form is a table of the server.
func (o *outputFlags) table() bool { return o.form == asTable || o.form == asWide }

// accept returns the Accept header of the form.
func (o *outputFlags) accept() string {
	switch o.form {
	case asTable, asWide:
		return acceptTable
	case asName:
		return acceptMetadata
	}
	return acceptJSON
}

// restore parses an item of a list and sets its apiVersion and kind, which items need not have.
func restore(m *mapping, item []byte) (*unstructured.Unstructured, error) {
	var obj map[string]any
	if err := utiljson.Unmarshal(item, &obj); err != nil {
		return nil, fmt.Errorf("read an object of the answer: %w", err)
	}
	if obj == nil {
		return nil, fmt.Errorf("the answer has a %s that is not an object", m)
	}
	obj["apiVersion"], obj["kind"] = m.gvk.GroupVersion().String(), m.gvk.Kind
	return &unstructured.Unstructured{Object: obj}, nil
}

// listOf returns a List of objects.
func listOf(objs []*unstructured.Unstructured) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List",
		"metadata": map[string]any{"resourceVersion": ""}}}
	for _, obj := range objs {
		list.Items = append(list.Items, *obj)
	}
	return list
}

// object writes one object or a list of objects.
func (o *outputFlags) object(w io.Writer, obj runtime.Object) error {
	// A template that fails prints its input, which may be large and secret.
	var b bytes.Buffer
	err := o.printer.PrintObj(obj, &b)
	if err != nil && (o.form == asPath || o.form == asTemplate) {
		return usagef("the template of --output does not fit what was found: %w", shortened(err))
	} else if err != nil {
		return fmt.Errorf("write %s: %w", o.output, err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// shortened returns the beginning of the first line of an error.
func shortened(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	text, _, _ = strings.Cut(text, ". Printing more information")
	if i := strings.LastIndex(text, "Error executing template: "); i >= 0 {
		text = text[i+len("Error executing template: "):]
	}
	return errors.New(text[:min(len(text), 300)])
}

// document writes a value that is not a Kubernetes object.
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
			return usagef("the template of jsonpath does not fit: %w", err)
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

// plain converts a value to maps, for templates.
func plain(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = utiljson.Unmarshal(b, &out)
	return out, err
}
