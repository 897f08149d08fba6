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

// appender is implemented by the generated protobuf types.
type appender interface {
	Size() int
	MarshalTo(b []byte) (int, error)
}

// storeCodec returns the codec for readers that keep typed objects encoded. It decodes both
// encodings and tells them apart by the first byte: JSON begins with a brace. In protobuf
// that byte would begin a group, which Kubernetes does not use.
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

// appendObject encodes a copy of obj, because encoding a Quantity caches its text in the
// Quantity, and other goroutines may be reading the object.
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

// dynamicCodec is like storeCodec for unstructured objects.
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

// bytesCodec is like storeCodec for raw objects.
var bytesCodec = &object.Codec[*RawObject]{
	Encode: func(dst []byte, obj *RawObject) ([]byte, error) { return append(dst, obj.Bytes...), nil },
	Decode: openRaw,
	Lends:  true,
}

// stringTable shares equal strings among the objects of a source. Pods of one template have
// most of their strings in common.
type stringTable struct {
	mu    sync.Mutex
	table *share.Strings
	slots int // the size of table
	seen  int // the number of objects
}

// Many sources have few objects or none, so the size of the table grows with their number.
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
		s.table = share.NewStrings(s.slots) // the strings of the old table will soon be seen again
	}
	s.table.Share(obj)
}
