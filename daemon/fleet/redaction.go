package fleet

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// redaction is a rule that replaces values of objects before they are stored.
type redaction struct {
	resources pattern
	path      []string // of names or indexes in an object; each may have stars
}

// secretRedactions keep the data of secrets out of the mirror.
var secretRedactions = []string{"secrets.:/data/*", "secrets.:/stringData/*",
	"secrets.:/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"}

// parseRedaction parses a rule such as "pods:/spec/containers/*/env/*/value".
func parseRedaction(text string) (r redaction, err error) {
	resources, pointer, ok := strings.Cut(text, ":")
	if !ok || !strings.HasPrefix(pointer, "/") || pointer == "/" {
		return r, fmt.Errorf("%q is not a rule; write it as RESOURCES:/PATH, such as configmaps:/data/*password* or "+
			"pods:/spec/containers/*/env/*/value", text)
	}
	if r.resources, err = parsePattern(resources); err != nil {
		return r, err
	}
	for _, part := range strings.Split(pointer[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if _, err := match(part, ""); err != nil {
			return r, fmt.Errorf("%q is not a rule: %q cannot be matched with names: %w", text, part, err)
		}
		r.path = append(r.path, part)
	}
	if r.hits("apiVersion") || r.hits("kind") || r.hits("metadata") {
		return r, fmt.Errorf("%q would redact more than a value; name a field below it", text)
	}
	for _, field := range []string{"name", "namespace", "uid", "resourceVersion", "labels", "annotations"} {
		if r.hits("metadata", field) {
			return r, fmt.Errorf("%q would redact metadata.%s, by which objects are found", text, field)
		}
	}
	if len(r.path) == 1 && !strings.Contains(r.path[0], "*") {
		return r, fmt.Errorf("%q would redact more than a value; name a field below it", text)
	}
	return r, nil
}

// hits reports whether the rule redacts a field as a whole.
func (r *redaction) hits(path ...string) bool {
	return len(r.path) == len(path) && !slices.ContainsFunc(path, func(name string) bool {
		ok, _ := match(r.path[slices.Index(path, name)], name) // the pattern was checked
		return !ok
	})
}

// match reports whether a name matches a pattern with stars, which match any text.
func match(pattern, name string) (bool, error) {
	if strings.ContainsAny(pattern, `?[\`) {
		return false, errors.New("only * is special")
	}
	// In path.Match a star matches no slash.
	return path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
}

// redactions are the rules of one resource.
type redactions struct {
	paths     [][]string
	ofSecrets bool
}

// redactionsOf returns the rules for a resource, nil if there are none.
func redactionsOf(all []redaction, of schema.GroupResource) *redactions {
	out := &redactions{ofSecrets: of == schema.GroupResource{Resource: "secrets"}}
	for _, r := range all {
		if r.resources.matches(of) {
			out.paths = append(out.paths, r.path)
		}
	}
	if len(out.paths) == 0 {
		return nil
	}
	return out
}

// fingerprint returns a text that differs if the rules do.
func (rs *redactions) fingerprint() string {
	if rs == nil {
		return ""
	}
	paths := make([]string, len(rs.paths))
	for i, p := range rs.paths {
		paths[i] = fmt.Sprintf("%q", p)
	}
	slices.Sort(paths)
	return strings.Join(paths, " ")
}

// parseRedactions parses rules, and adds those for secrets unless their data is wanted.
func parseRedactions(rules []string, secretData bool) (out []redaction, err error) {
	if !secretData {
		rules = append(append([]string(nil), secretRedactions...), rules...)
	}
	for _, text := range rules {
		r, err := parseRedaction(text)
		if err != nil {
			return nil, fmt.Errorf("redact: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

// transform returns a copy of an object without what the rules redact.
func (rs *redactions) transform(obj *Object) (*Object, error) {
	return &Object{Bytes: rs.append(make([]byte, 0, len(obj.Bytes)), obj.Bytes, rs.paths, "")}, nil
}

// append appends a value to dst, without what the rest of some rules redacts. parent is the name of the first field.
func (rs *redactions) append(dst, value []byte, rest [][]string, parent string) []byte {
	for _, path := range rest {
		if len(path) == 0 {
			return append(dst, rs.replacement(value, parent)...)
		}
	}
	switch {
	case len(rest) == 0 || len(value) == 0:
		return append(dst, value...)
	case value[0] == '{':
		return rs.appendObject(dst, value, rest, parent)
	case value[0] == '[':
		return rs.appendArray(dst, value, rest, parent)
	}
	return append(dst, value...)
}

func (rs *redactions) appendObject(dst, value []byte, rest [][]string, parent string) []byte {
	i, ok := jsonscan.Open(value)
	copied := 0
	for ok {
		var m jsonscan.Named
		if m, i, ok = jsonscan.Next(value, i); !ok {
			break
		}
		name := jsonscan.Unquote(m.Name, m.Escaped)
		if below := matching(rest, name); len(below) > 0 {
			field := parent
			if field == "" {
				field = name
			}
			dst = append(dst, value[copied:m.From]...)
			dst = rs.append(dst, value[m.From:m.To], below, field)
			copied = m.To
		}
	}
	return append(dst, value[copied:]...)
}

func (rs *redactions) appendArray(dst, value []byte, rest [][]string, parent string) []byte {
	dst = append(dst, '[')
	i, first := 1, true
	for n := 0; ; n++ {
		element, next, ok := jsonscan.NextElement(value, i)
		if !ok {
			break
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = rs.append(dst, element, matching(rest, fmt.Sprint(n)), parent)
		i = next
	}
	return append(dst, ']')
}

// matching returns what is left of the rules whose first part matches a name.
func matching(rest [][]string, name string) (below [][]string) {
	for _, path := range rest {
		if ok, _ := match(path[0], name); ok { // parseRedaction has checked the pattern
			below = append(below, path[1:])
		}
	}
	return below
}

// replacement returns what is shown instead of a value. The data of a Secret or the binary data of a ConfigMap stays
// valid base64, so that clients can decode the object.
func (rs *redactions) replacement(value []byte, field string) string {
	switch {
	case len(value) == 0 || value[0] != '"':
		return "null"
	case field == "binaryData" || rs.ofSecrets && field == "data":
		return `"cmVkYWN0ZWQ="` // redacted
	}
	return `"redacted"`
}
