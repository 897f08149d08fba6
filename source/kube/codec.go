package kube

import (
	"bytes"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/mirador-k8s/mirador/object"
)

// codec decodes objects into items. An item must not refer to the raw bytes, which are
// reused. If decoding fails, the item has the parts of the name that could be read.
type codec[T any] struct {
	listAccept, watchAccept string
	// kept is the codec for readers that keep objects encoded. bytes returns the encoded form
	// that such a reader keeps; it is nil if the bytes of the wire cannot be kept.
	kept     *object.Codec[T]
	bytes    func(kind typeMeta, raw []byte) ([]byte, error)
	protobuf func(kind typeMeta, raw []byte) (object.Item[T], error) // nil if T has no protobuf encoding
	json     func(kind typeMeta, raw []byte) (object.Item[T], error)
}

// keeps is the form in which the reader of a stream keeps objects.
type keeps uint8

const (
	asTheyAre keeps = iota
	encoded
	inParts // equal parts are shared
)

func keepsOf(inBytes, shares bool) keeps {
	switch {
	case inBytes:
		return encoded
	case shares:
		return inParts
	}
	return asTheyAre
}

// decoder returns the function that decodes the objects of one stream. If the reader keeps
// objects encoded, items include their bytes. If it keeps them whole, equal strings are shared.
func (s *Source[T]) decoder(w wire, keeps keeps) (func(typeMeta, []byte) (object.Item[T], error), error) {
	c := &s.codec
	decode := c.json
	_, isProtobuf := w.(protobufWire)
	if isProtobuf {
		decode = c.protobuf
	}
	if decode == nil {
		return nil, fmt.Errorf("the server answered in protobuf, which was not requested")
	}
	return func(kind typeMeta, raw []byte) (object.Item[T], error) {
		item, err := decode(kind, raw)
		if err != nil {
			return item, err
		}
		item.Codec, item.Owned = c.kept, true
		switch {
		case item.Decode != nil: // nothing was decoded
		case keeps == asTheyAre:
			s.strings.share(item.Value)
		case keeps == encoded && c.bytes != nil:
			if !isProtobuf {
				raw = bytes.TrimLeft(raw, " \t\r\n") // so that the first byte tells JSON from protobuf
			}
			item.Encoded, err = c.bytes(kind, raw)
		}
		return item, err
	}, nil
}

// message is implemented by the generated protobuf types.
type message interface{ Unmarshal([]byte) error }

// typed decodes into T, a pointer to a struct. All its objects are of one kind.
type typed[T runtime.Object] struct {
	elem reflect.Type
	kind typeMeta
	// anyKind accepts objects of any kind, for metadata.
	anyKind bool
}

func (t *typed[T]) codec(forceJSON bool) codec[T] {
	c := codec[T]{listAccept: jsonType, watchAccept: jsonType, json: t.decodeJSON, kept: t.storeCodec()}
	if !t.anyKind { // a server without PartialObjectMetadata sends whole objects of any kind
		c.bytes = func(_ typeMeta, raw []byte) ([]byte, error) { return bytes.Clone(raw), nil }
	}
	if _, ok := reflect.New(t.elem).Interface().(message); ok && !forceJSON {
		// A server without protobuf for this resource answers in JSON.
		c.listAccept = protobufType + "," + jsonType
		c.watchAccept = c.listAccept
		c.protobuf = t.decodeProtobuf
	}
	return c
}

func (t *typed[T]) decodeProtobuf(kind typeMeta, raw []byte) (object.Item[T], error) {
	obj := reflect.New(t.elem).Interface()
	err := t.check(kind.kind)
	if err == nil {
		err = obj.(message).Unmarshal(raw)
	}
	var item object.Item[T]
	if err == nil {
		item, err = t.item(obj.(T), len(raw))
	}
	if err != nil {
		item.Key, item.Version, item.UID = protobufName(raw)
	}
	return item, err
}

func (t *typed[T]) decodeJSON(kind typeMeta, raw []byte) (object.Item[T], error) {
	obj := reflect.New(t.elem).Interface().(T)
	err := t.check(kind.kind)
	if err == nil {
		err = json.Unmarshal(raw, obj)
	}
	if err == nil {
		err = t.check(obj.GetObjectKind().GroupVersionKind().Kind)
	}
	var item object.Item[T]
	if err == nil {
		item, err = t.item(obj, len(raw))
	}
	if err != nil {
		item.Key, item.Version, item.UID = jsonName(raw)
	}
	return item, err
}

// check rejects objects of another kind than T's, which must not be decoded into T.
func (t *typed[T]) check(kind string) error {
	if kind == "" || kind == t.kind.kind || t.anyKind {
		return nil
	}
	return fmt.Errorf("%w: %s and not %s; set Options.Resource to the resource of %s",
		errWrongKind, kind, t.kind.kind, t.elem)
}

// item makes an item of an object and sets its kind, which neither protobuf nor the items
// of a JSON list include.
func (t *typed[T]) item(obj T, size int) (object.Item[T], error) {
	if tm, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
		tm.APIVersion, tm.Kind = t.kind.apiVersion, t.kind.kind
	} else {
		obj.GetObjectKind().SetGroupVersionKind(t.kind.gvk())
	}
	meta := any(obj).(metav1.ObjectMetaAccessor).GetObjectMeta()
	if meta.GetName() == "" {
		return object.Item[T]{}, errNoName
	}
	return object.Item[T]{
		Key:     object.NewKey(meta.GetNamespace(), meta.GetName()),
		Version: object.Version(meta.GetResourceVersion()),
		UID:     string(meta.GetUID()),
		Size:    size,
		Value:   obj,
	}, nil
}

// metadataCodec requests only the metadata. If the server does not support that, it sends
// whole objects, and the codec decodes only their metadata.
func metadataCodec(forceJSON bool) codec[*metav1.PartialObjectMetadata] {
	t := &typed[*metav1.PartialObjectMetadata]{
		elem:    reflect.TypeFor[metav1.PartialObjectMetadata](),
		kind:    typeMeta{"meta.k8s.io/v1", "PartialObjectMetadata"},
		anyKind: true,
	}
	c := t.codec(forceJSON)
	as := func(kind string) string {
		form := ";as=" + kind + ";g=meta.k8s.io;v=v1"
		accept := jsonType + form + "," + jsonType
		if c.protobuf != nil {
			accept = protobufType + form + "," + accept
		}
		return accept
	}
	c.listAccept, c.watchAccept = as("PartialObjectMetadataList"), as("PartialObjectMetadata")
	return c
}

// unstructuredCodec decodes objects of any kind into maps.
func unstructuredCodec() codec[*unstructured.Unstructured] {
	return codec[*unstructured.Unstructured]{listAccept: jsonType, watchAccept: jsonType, json: decodeUnstructured,
		kept: dynamicCodec, bytes: withKind}
}

func decodeUnstructured(kind typeMeta, raw []byte) (item object.Item[*unstructured.Unstructured], err error) {
	u := &unstructured.Unstructured{}
	err = json.Unmarshal(raw, &u.Object)
	if err == nil && u.Object == nil {
		err = errNotObject
	}
	if err == nil {
		err = kind.complete(u)
	}
	if err == nil && u.GetName() == "" {
		err = errNoName
	}
	if err != nil {
		item.Key, item.Version, item.UID = jsonName(raw)
		return item, err
	}
	item.Key = object.NewKey(u.GetNamespace(), u.GetName())
	item.Version = object.Version(u.GetResourceVersion())
	item.UID = string(u.GetUID())
	item.Size = len(raw)
	item.Value = u
	return item, nil
}

// complete sets the apiVersion and kind of an object of a list if it has none.
func (k typeMeta) complete(u *unstructured.Unstructured) error {
	_, hasVersion := u.Object["apiVersion"]
	_, hasKind := u.Object["kind"]
	if hasVersion && hasKind {
		return nil
	}
	if k.kind == "" || k.apiVersion == "" {
		return errNoKind
	}
	if !hasVersion {
		u.Object["apiVersion"] = k.apiVersion
	}
	if !hasKind {
		u.Object["kind"] = k.kind
	}
	return nil
}

// jsonName returns the parts of the name that can be read from an object that could not
// be decoded.
func jsonName(raw []byte) (object.Key, object.Version, string) {
	h, _ := scanHeader(raw)
	return partialKey(string(h.namespace), string(h.name)), object.Version(h.version), string(h.uid)
}
