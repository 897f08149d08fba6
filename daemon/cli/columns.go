package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// column is one column of custom-columns: a head, and the path of its cells.
type column struct {
	head string
	path *jsonpath.JSONPath
}

// parseColumns parses HEAD:PATH,… or the content of a file with heads in one line and paths in the next.
func parseColumns(spec string) (out []column, err error) {
	pairs := strings.Split(strings.TrimSpace(spec), ",")
	if lines := strings.Split(strings.TrimSpace(spec), "\n"); len(lines) > 1 {
		heads, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
		if len(heads) != len(paths) || len(lines) > 2 {
			return nil, usagef("the file of custom-columns has a line of heads, and below it a line with as many paths")
		}
		pairs = pairs[:0]
		for i, h := range heads {
			pairs = append(pairs, h+":"+paths[i])
		}
	}
	for _, pair := range pairs {
		head, path, ok := strings.Cut(pair, ":")
		if !ok || head == "" || path == "" {
			return nil, usagef("%q is not a column; write custom-columns as in NAME:.metadata.name,NODE:.spec.nodeName", pair)
		}
		c := column{head: head, path: jsonpath.New(head).AllowMissingKeys(true)}
		if err := c.path.Parse(relaxed(path)); err != nil {
			return nil, usagef("the path of column %q is not usable: %w; write it as in .metadata.name", head, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// relaxed adds the braces and the first dot of a path if they are missing.
func relaxed(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	if !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "[") {
		path = "." + path
	}
	return "{" + path + "}"
}

func heads(columns []column) (out []string) {
	for _, c := range columns {
		out = append(out, c.head)
	}
	return out
}

// cellsOf returns the cells of an object.
func cellsOf(columns []column, obj *unstructured.Unstructured) (out []string) {
	for _, c := range columns {
		out = append(out, c.cell(obj.Object))
	}
	return out
}

func (c *column) cell(obj map[string]any) string {
	found, err := c.path.FindResults(obj)
	if err != nil {
		return "<none>"
	}
	var values []string
	for _, results := range found {
		for _, v := range results {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				values = append(values, fmt.Sprint(v.Interface()))
			}
		}
	}
	if len(values) == 0 {
		return "<none>"
	}
	return clean(strings.Join(values, ","))
}
