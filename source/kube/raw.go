package kube

import (
	"errors"

	"github.com/mirador-k8s/mirador/object"
)

// RawObject is an object as the server sent it: valid JSON with apiVersion and kind, with
// all fields in their original order.
type RawObject struct {
	// Bytes is the object. It must not be changed.
	Bytes []byte
}

var errNoKind = errors.New("neither the object nor its list has apiVersion and kind")

// rawCodec keeps the bytes. Items have them in Encoded, so that a store can keep or compress
// them without encoding the object again.
func rawCodec() codec[*RawObject] {
	return codec[*RawObject]{listAccept: jsonType, watchAccept: jsonType, json: keepRaw, kept: bytesCodec}
}

// RawCodec returns the codec of raw objects, for stores that keep them packed.
func RawCodec() *object.Codec[*RawObject] { return bytesCodec }

func openRaw(encoded []byte) (*RawObject, error) { return &RawObject{Bytes: encoded}, nil }

func keepRaw(kind typeMeta, raw []byte) (item object.Item[*RawObject], err error) {
	h, err := scanHeader(raw)
	item.Key = partialKey(string(h.namespace), string(h.name))
	item.Version = object.Version(h.version)
	item.UID = string(h.uid)
	if err == nil && len(h.name) == 0 {
		err = errNoName
	}
	if err == nil {
		item.Encoded, err = splice(raw, kind, !h.hasAPIVersion, !h.hasKind)
	}
	if err != nil {
		return item, err
	}
	item.Size = len(item.Encoded)
	item.Decode = openRaw
	return item, nil
}

// withKind returns a copy of an object's bytes that includes apiVersion and kind.
func withKind(kind typeMeta, raw []byte) ([]byte, error) {
	h, err := scanHeader(raw)
	if err != nil {
		return nil, err
	}
	return splice(raw, kind, !h.hasAPIVersion, !h.hasKind)
}

// splice copies an object and inserts the missing ones of apiVersion and kind at the start.
// raw must be a JSON object with at least one member.
func splice(raw []byte, kind typeMeta, apiVersion, needKind bool) ([]byte, error) {
	if (apiVersion || needKind) && (kind.kind == "" || kind.apiVersion == "") {
		return nil, errNoKind
	}
	start := 0
	for raw[start] != '{' {
		start++
	}
	n := len(raw)
	if needKind {
		n += len(`"kind":"",`) + len(kind.kind)
	}
	if apiVersion {
		n += len(`"apiVersion":"",`) + len(kind.apiVersion)
	}
	out := append(make([]byte, 0, n), raw[:start+1]...)
	if needKind {
		out = append(append(append(out, `"kind":"`...), kind.kind...), `",`...)
	}
	if apiVersion {
		out = append(append(append(out, `"apiVersion":"`...), kind.apiVersion...), `",`...)
	}
	return append(out, raw[start+1:]...), nil
}
