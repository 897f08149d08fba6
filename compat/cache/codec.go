package cache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mirador-k8s/mirador/object"
)

// protoMessage is what the generated types have.
type protoMessage interface {
	Size() int
	MarshalTo(b []byte) (int, error)
	Unmarshal(b []byte) error
}

// codecFor encodes and decodes objects of the type of an example, for the packed
// layout. Objects of any other type are refused, and so kept as they are.
//
// A message is written behind its apiVersion and kind, each with a zero byte at its
// end, because protobuf has no place for them; all else is JSON.
func codecFor(example any) *object.Codec[any] {
	t := reflect.TypeOf(example)
	check := func(obj any) error {
		if t == nil || t.Kind() != reflect.Pointer || reflect.TypeOf(obj) != t {
			return fmt.Errorf("the object is a %T and not a %v, which the informer was made for", obj, t)
		}
		return nil
	}
	return &object.Codec[any]{
		Encode: func(dst []byte, obj any) ([]byte, error) {
			if err := check(obj); err != nil {
				return nil, err
			}
			if o, ok := obj.(runtime.Object); ok {
				obj = o.DeepCopyObject() // a Quantity writes its text down in itself when it is encoded
			}
			return encode(dst, obj)
		},
		Decode: func(encoded []byte) (any, error) {
			obj := reflect.New(t.Elem()).Interface()
			return obj, decode(encoded, obj)
		},
	}
}

func encode(dst []byte, obj any) ([]byte, error) {
	m, isMessage := obj.(protoMessage)
	kind := typeOf(obj)
	switch u, _ := obj.(*unstructured.Unstructured); {
	case u != nil:
		encoded, err := json.Marshal(u.Object)
		return append(dst, encoded...), err
	case !isMessage || kind == nil:
		encoded, err := json.Marshal(obj)
		return append(dst, encoded...), err
	}
	dst = append(append(dst, kind.APIVersion...), 0)
	dst = append(append(dst, kind.Kind...), 0)
	at := len(dst)
	dst = append(dst, make([]byte, m.Size())...)
	n, err := m.MarshalTo(dst[at:])
	return dst[:at+n], err
}

func decode(encoded []byte, obj any) error {
	m, isMessage := obj.(protoMessage)
	kind := typeOf(obj)
	switch u, _ := obj.(*unstructured.Unstructured); {
	case u != nil:
		return utiljson.Unmarshal(encoded, &u.Object)
	case !isMessage || kind == nil:
		return json.Unmarshal(encoded, obj)
	}
	version, rest, _ := bytes.Cut(encoded, []byte{0})
	name, rest, _ := bytes.Cut(rest, []byte{0})
	if err := m.Unmarshal(rest); err != nil {
		return err
	}
	kind.APIVersion, kind.Kind = string(version), string(name)
	return nil
}

// typeOf is where an object has its apiVersion and kind; nil if it has no such place.
func typeOf(obj any) *metav1.TypeMeta {
	if o, ok := obj.(runtime.Object); ok {
		kind, _ := o.GetObjectKind().(*metav1.TypeMeta)
		return kind
	}
	return nil
}
