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

// protoMessage is implemented by types with generated protobuf code.
type protoMessage interface {
	Size() int
	MarshalTo(b []byte) (int, error)
	Unmarshal(b []byte) error
}

// codecFor returns a codec for objects of the example's type, for the packed
// layout. Objects of any other type are refused, and the store keeps them as they are.
//
// A protobuf message follows its apiVersion and kind, each terminated by a zero
// byte, because the message does not contain them. All other types are encoded as JSON.
func codecFor(example any) *object.Codec[any] {
	t := reflect.TypeOf(example)
	check := func(obj any) error {
		if t == nil || t.Kind() != reflect.Pointer || reflect.TypeOf(obj) != t {
			return fmt.Errorf("the object is a %T; the informer is for %v", obj, t)
		}
		return nil
	}
	return &object.Codec[any]{
		Encode: func(dst []byte, obj any) ([]byte, error) {
			if err := check(obj); err != nil {
				return nil, err
			}
			if o, ok := obj.(runtime.Object); ok {
				obj = o.DeepCopyObject() // encoding a Quantity caches its text in the Quantity
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

// typeOf returns the object's apiVersion and kind, or nil if its type has no TypeMeta.
func typeOf(obj any) *metav1.TypeMeta {
	if o, ok := obj.(runtime.Object); ok {
		kind, _ := o.GetObjectKind().(*metav1.TypeMeta)
		return kind
	}
	return nil
}
