package fleet

import (
	"slices"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// labelIndex is the index of every resource by the labels of its objects, each as
// name=value. Package query uses it.
const labelIndex = "label"

// byLabel returns the labels in an object's JSON. A value that is not a string is ignored, and
// of two labels with one name the last counts.
func byLabel(obj *Object) ([]string, error) {
	from, to, ok := jsonscan.Member(obj.Bytes, "metadata")
	if !ok {
		return nil, nil
	}
	meta := obj.Bytes[from:to]
	if from, to, ok = jsonscan.Member(meta, "labels"); !ok {
		return nil, nil
	}
	raw := meta[from:to]
	set := map[string]string{}
	for i, more := jsonscan.Open(raw); more; {
		var m jsonscan.Named
		if m, i, more = jsonscan.Next(raw, i); !more {
			break
		}
		name := jsonscan.Unquote(m.Name, m.Escaped)
		if raw[m.From] == '"' {
			set[name] = jsonscan.Unquoted(raw[m.From:m.To])
		} else {
			delete(set, name)
		}
	}
	values := make([]string, 0, len(set))
	for name, value := range set {
		values = append(values, name+"="+value)
	}
	slices.Sort(values) // equal labels give equal values, so that an update need not change the index
	return values, nil
}
