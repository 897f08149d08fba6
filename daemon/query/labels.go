package query

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// Labels gives the object's labels. Who only asks whether a selector matches need not call it:
// that is done on the bytes.
func (d *Doc) Labels() map[string]string {
	raw := d.labelBytes()
	if raw == nil {
		return nil
	}
	set := make(map[string]string)
	for i := 1; ; {
		m, next, ok := jsonscan.Next(raw, i)
		if !ok {
			return set
		}
		key := jsonscan.Unquote(m.Name, m.Escaped)
		delete(set, key) // the last counts, also if it is no string
		if value := raw[m.From:m.To]; value[0] == '"' {
			set[key] = decodeString(value)
		}
		i = next
	}
}

var labelsPath = Path{steps: []step{{name: "metadata"}, {name: "labels"}}}

// labelBytes gives the object of the labels, or nil.
func (d *Doc) labelBytes() []byte {
	if !d.sought {
		d.sought = true
		if raw, ok := d.find(labelsPath); ok && raw[0] == '{' {
			d.labels = raw
		}
	}
	return d.labels
}

// scannedLabels is a Doc as a label selector wants to see it: a label is searched in the bytes when
// it is asked for, and no map is built.
type scannedLabels Doc

var _ labels.Labels = (*scannedLabels)(nil)

// Lookup returns the value of a label. What is no string is no label.
func (l *scannedLabels) Lookup(label string) (value string, exists bool) {
	raw := (*Doc)(l).labelBytes()
	if raw == nil {
		return "", false
	}
	v, ok := within(raw, &step{name: label})
	if !ok || v[0] != '"' {
		return "", false
	}
	return decodeString(v), true
}

// Has reports whether there is a label.
func (l *scannedLabels) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

// Get returns the value of a label, or "".
func (l *scannedLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}
