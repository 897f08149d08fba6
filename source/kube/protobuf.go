package kube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
)

// The format of the API server: four bytes of magic, then a runtime.Unknown whose field 1
// is the kind and whose field 2 is the object. Field 1 of a list is its ListMeta, and its
// repeated field 2 an item. Field 1 of every object is its ObjectMeta.
var magic = []byte("k8s\x00")

var (
	errShort      = errors.New("more bytes are needed")
	errNoMagic    = errors.New("the magic k8s\\0 of a Kubernetes protobuf is missing")
	errNoObject   = errors.New("the protobuf envelope contains no object")
	errWireType   = errors.New("a protobuf field has a type that no Kubernetes message uses")
	errOverrun    = errors.New("a protobuf field is longer than the message around it")
	errNoListMeta = errors.New("the list has no metadata")
)

// field describes a protobuf field: its payload begins after head bytes and has size bytes.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	head int
	size int
}

// parseField parses the tag and length of the field at the start of b. It returns errShort if
// b is too short.
func parseField(b []byte) (field, error) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return field{}, wireError(n)
	}
	f := field{num: num, typ: typ, head: n}
	switch typ {
	case protowire.BytesType:
		size, n := protowire.ConsumeVarint(b[f.head:])
		if n < 0 {
			return field{}, wireError(n)
		}
		if size > math.MaxInt/2 {
			return field{}, errOverrun
		}
		f.head, f.size = f.head+n, int(size)
	case protowire.VarintType:
		if _, f.size = protowire.ConsumeVarint(b[f.head:]); f.size < 0 {
			return field{}, wireError(f.size)
		}
	case protowire.Fixed32Type:
		f.size = 4
	case protowire.Fixed64Type:
		f.size = 8
	default:
		return field{}, errWireType
	}
	return f, nil
}

func wireError(n int) error {
	if err := protowire.ParseError(n); err != io.ErrUnexpectedEOF {
		return err
	}
	return errShort
}

// eachField calls visit for each field of a message.
func eachField(b []byte, visit func(num protowire.Number, typ protowire.Type, payload []byte)) error {
	for len(b) > 0 {
		f, err := parseField(b)
		if err != nil {
			return err
		}
		if f.size > len(b)-f.head {
			return errOverrun
		}
		visit(f.num, f.typ, b[f.head:f.head+f.size])
		b = b[f.head+f.size:]
	}
	return nil
}

// openEnvelope removes the magic and the runtime.Unknown around an object.
func openEnvelope(b []byte) (kind typeMeta, raw []byte, err error) {
	rest, ok := bytes.CutPrefix(b, magic)
	if !ok {
		return typeMeta{}, nil, errNoMagic
	}
	found := false
	var kindErr error
	err = eachField(rest, func(num protowire.Number, typ protowire.Type, payload []byte) {
		switch {
		case typ != protowire.BytesType:
		case num == 1:
			kind, kindErr = parseTypeMeta(payload)
		case num == 2:
			raw, found = payload, true
		}
	})
	switch {
	case err != nil:
		return kind, nil, err
	case kindErr != nil:
		return kind, nil, kindErr
	case !found:
		return kind, nil, errNoObject
	}
	return kind, raw, nil
}

func parseTypeMeta(b []byte) (kind typeMeta, err error) {
	err = eachField(b, func(num protowire.Number, typ protowire.Type, payload []byte) {
		switch {
		case typ != protowire.BytesType:
		case num == 1:
			kind.apiVersion = string(payload)
		case num == 2:
			kind.kind = string(payload)
		}
	})
	return kind, err
}

// protobufName returns the parts of the name that can be read from an object that could not
// be decoded.
func protobufName(raw []byte) (key object.Key, version object.Version, uid string) {
	var namespace, name string
	_ = eachField(raw, func(num protowire.Number, typ protowire.Type, meta []byte) {
		if num != 1 || typ != protowire.BytesType {
			return
		}
		_ = eachField(meta, func(num protowire.Number, typ protowire.Type, payload []byte) {
			switch {
			case typ != protowire.BytesType:
			case num == 1:
				name = string(payload)
			case num == 3:
				namespace = string(payload)
			case num == 5:
				uid = string(payload)
			case num == 6:
				version = object.Version(payload)
			}
		})
	})
	return partialKey(namespace, name), version, uid
}

// protobufFrames splits a watch into frames, each with its length before it in four bytes,
// big-endian.
type protobufFrames struct{ in *inbox }

func (d protobufFrames) next(block bool) ([]byte, bool, error) {
	if ok, err := d.in.want(4, block); !ok {
		if err == io.EOF && len(d.in.data()) == 0 {
			return nil, false, io.EOF
		}
		if len(d.in.data()) > 0 {
			err = cutShort(err)
		}
		return nil, false, err
	}
	size := binary.BigEndian.Uint32(d.in.data())
	if size > maxObject {
		return nil, false, garbled(fmt.Errorf("a frame announces %d bytes: %w", size, errTooLarge))
	}
	if ok, err := d.in.want(4+int(size), block); !ok {
		return nil, false, cutShort(err)
	}
	frame := d.in.data()[4 : 4+size : 4+size]
	d.in.drop(4 + int(size))
	return frame, true, nil
}

// protobufWire is the protobuf encoding.
type protobufWire struct{}

func (protobufWire) list(in *inbox) pageReader { return &protobufList{in: in} }
func (protobufWire) frames(in *inbox) framer   { return protobufFrames{in} }

func (protobufWire) event(frame []byte) (event, error) {
	var e event
	var found bool
	var inner error
	err := eachField(frame, func(num protowire.Number, typ protowire.Type, payload []byte) {
		switch {
		case typ != protowire.BytesType:
		case num == 1:
			e.what = eventName(payload)
		case num == 2:
			inner = eachField(payload, func(num protowire.Number, typ protowire.Type, raw []byte) {
				if num == 1 && typ == protowire.BytesType {
					e.object, found = raw, true
				}
			})
		}
	})
	switch {
	case err != nil:
		return e, fmt.Errorf("read a watch event: %w", err)
	case inner != nil:
		return e, fmt.Errorf("read the object of a watch event: %w", inner)
	case e.what == "":
		return e, errors.New("a watch event has no type")
	case !found:
		return e, errors.New("a watch event has no object")
	}
	e.typeMeta, e.object, e.err = openEnvelope(e.object)
	return e, nil
}

func (protobufWire) meta(raw []byte) (metav1.ObjectMeta, error) {
	var o metav1.PartialObjectMetadata
	err := o.Unmarshal(raw)
	return o.ObjectMeta, err
}

func (protobufWire) status(kind typeMeta, raw []byte) (metav1.Status, error) {
	var s metav1.Status
	if kind.kind != "Status" {
		return s, fmt.Errorf("expected a Status and got a %s", strings.ToValidUTF8(kind.kind, "?"))
	}
	err := s.Unmarshal(raw)
	return s, err
}
