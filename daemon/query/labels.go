package query

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// Labels returns the object's labels. Selectors do not need it: they read the bytes.
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
		delete(set, key) // the last one counts, even if it is not a string
		if value := raw[m.From:m.To]; value[0] == '"' {
			set[key] = decodeString(value)
		}
		i = next
	}
}

var labelsPath = Path{steps: []step{{name: "metadata"}, {name: "labels"}}}

// labelBytes returns the bytes of the labels, or nil.
func (d *Doc) labelBytes() []byte {
	if !d.labelsRead {
		d.labelsRead = true
		if raw, ok := d.find(labelsPath); ok && raw[0] == '{' {
			d.labels = raw
		}
	}
	return d.labels
}

// scannedLabels implements labels.Labels for a Doc. It searches a label in the bytes, without building a map.
type scannedLabels Doc

var _ labels.Labels = (*scannedLabels)(nil)

// Lookup returns the value of a label. Values that are not strings are ignored.
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

// Has reports whether the object has a label.
func (l *scannedLabels) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

// Get returns the value of a label, or "".
func (l *scannedLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}
