// Package jsondiff finds the differences between two states of a Kubernetes object.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Change is one difference. Path is a JSON pointer (RFC 6901): of a removed value in the old object, otherwise in the
// new one.
type Change struct {
	Op   string `json:"op"` // add, remove or replace
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// Objects returns the differences between two states of an object, by path, without metadata.managedFields and
// metadata.resourceVersion, which say nothing about the object. Numbers are json.Number.
func Objects(old, now []byte) ([]Change, error) {
	a, err := decode(old)
	if err != nil {
		return nil, err
	}
	b, err := decode(now)
	if err != nil {
		return nil, err
	}
	return appendChanges(nil, "", a, b), nil
}

func decode(obj []byte) (map[string]any, error) {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(obj))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("compare two states of an object: %w", err)
	}
	if meta, ok := m["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
		delete(meta, "resourceVersion")
	}
	return m, nil
}

func appendChanges(dst []Change, path string, a, b any) []Change {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return appendMembers(dst, path, a, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			return appendElements(dst, path, a, b)
		}
	default:
		switch b.(type) {
		case map[string]any, []any:
		default:
			if a == b {
				return dst
			}
		}
	}
	return append(dst, Change{Op: "replace", Path: path, Old: a, New: b})
}

func appendMembers(dst []Change, path string, a, b map[string]any) []Change {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		old, inOld := a[name]
		now, inNew := b[name]
		at := path + "/" + escape(name)
		switch {
		case !inNew:
			dst = append(dst, Change{Op: "remove", Path: at, Old: old})
		case !inOld:
			dst = append(dst, Change{Op: "add", Path: at, New: now})
		default:
			dst = appendChanges(dst, at, old, now)
		}
	}
	return dst
}

// appendElements compares what is between the elements that both arrays begin with and those that both end with.
func appendElements(dst []Change, path string, a, b []any) []Change {
	first := 0
	for first < len(a) && first < len(b) && equal(a[first], b[first]) {
		first++
	}
	last := 0
	for last < len(a)-first && last < len(b)-first && equal(a[len(a)-1-last], b[len(b)-1-last]) {
		last++
	}
	for i := first; i < max(len(a), len(b))-last; i++ {
		at := path + "/" + strconv.Itoa(i)
		switch {
		case i >= len(b)-last:
			dst = append(dst, Change{Op: "remove", Path: at, Old: a[i]})
		case i >= len(a)-last:
			dst = append(dst, Change{Op: "add", Path: at, New: b[i]})
		default:
			dst = appendChanges(dst, at, a[i], b[i])
		}
	}
	return dst
}

func equal(a, b any) bool { return len(appendChanges(nil, "", a, b)) == 0 }

// escape escapes a name for a JSON pointer.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
