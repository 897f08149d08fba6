package kube

import (
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mirador-k8s/mirador/internal/share"
	"github.com/mirador-k8s/mirador/object"
)

// appender is what the generated protobuf types have for writing.
type appender interface {
	Size() int
	MarshalTo(b []byte) (int, error)
}

// storeCodec encodes and decodes typed objects for whoever keeps them encoded. It
// reads both wires: what is kept of JSON begins with its brace, and a message never does:
// that would be the start of a group, and Kubernetes has none.
func (t *typed[T]) storeCodec() *object.Codec[T] {
	return &object.Codec[T]{
		Encode: func(dst []byte, obj T) ([]byte, error) { return appendObject(dst, obj) },
		Decode: func(encoded []byte) (T, error) {
			decode := t.decodeProtobuf
			if startsJSON(encoded) {
				decode = t.decodeJSON
			}
			item, err := decode(t.kind, encoded)
			return item.Value, err
		},
	}
}

// appendObject encodes a copy: a Quantity writes its text down in itself when it is
// encoded, and the object may be somebody else's.
func appendObject(dst []byte, obj runtime.Object) ([]byte, error) {
	obj = obj.DeepCopyObject()
	m, ok := obj.(appender)
	if _, reads := obj.(message); !ok || !reads {
		encoded, err := json.Marshal(obj)
		return append(dst, encoded...), err
	}
	at := len(dst)
	dst = append(dst, make([]byte, m.Size())...)
	n, err := m.MarshalTo(dst[at:])
	return dst[:at+n], err
}

func startsJSON(encoded []byte) bool { return len(encoded) > 0 && encoded[0] == '{' }

// dynamicCodec is the same for objects that are maps.
var dynamicCodec = &object.Codec[*unstructured.Unstructured]{
	Encode: func(dst []byte, obj *unstructured.Unstructured) ([]byte, error) {
		encoded, err := json.Marshal(obj.Object)
		return append(dst, encoded...), err
	},
	Decode: func(encoded []byte) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		return u, utiljson.Unmarshal(encoded, &u.Object)
	},
}

// bytesCodec is the same for objects that are bytes.
var bytesCodec = &object.Codec[*RawObject]{
	Encode: func(dst []byte, obj *RawObject) ([]byte, error) { return append(dst, obj.Bytes...), nil },
	Decode: openRaw,
	Lends:  true,
}

// stringTable lets equal strings of the objects of a source be one. Pods of one
// template have most of theirs in common.
type stringTable struct {
	mu    sync.Mutex
	table *share.Strings
	slots int // of table
	seen  int // how many objects
}

// Many sources have few objects, or none: how many strings are remembered grows with
// the objects.
const (
	firstSlots = 1 << 8
	mostSlots  = 1 << 15
)

func (s *stringTable) share(obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen++
	switch {
	case s.table == nil:
		s.slots = firstSlots
		s.table = share.NewStrings(s.slots)
	case s.seen > s.slots && s.slots < mostSlots:
		s.slots *= 8
		s.table = share.NewStrings(s.slots) // what was remembered is soon seen again
	}
	s.table.Share(obj)
}
