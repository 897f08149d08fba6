package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json" // case-sensitive, like the server
)

var (
	errNotObject = errors.New("expected a JSON object")
	errNoItems   = errors.New("the answer has no items: it is not a list")
	errAfterEnd  = errors.New("there is more data after the end of the list")
	errTwice     = errors.New("it occurs twice, and one of the two would be lost")
)

// jsonInput reads JSON from an inbox. A method consumes nothing until all it needs has
// arrived, so that it can be called again.
type jsonInput struct {
	in  *inbox
	ext extent
}

// peek returns the next byte that is not white space.
func (d *jsonInput) peek(block bool) (byte, bool, error) {
	for {
		b := d.in.data()
		i := 0
		for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
			i++
		}
		d.in.drop(i)
		if i < len(b) {
			return b[i], true, nil
		}
		if ok, err := d.in.more(block); !ok {
			return 0, false, err
		}
	}
}

// value consumes and returns the next value of any type.
func (d *jsonInput) value(block bool) ([]byte, bool, error) {
	for {
		b := d.in.data()
		if n, ok := d.ext.end(b); ok {
			if n > maxObject {
				return nil, false, garbled(errTooLarge)
			}
			d.ext = extent{}
			d.in.drop(n)
			return b[:n:n], true, nil
		}
		if ok, err := d.in.more(block); !ok {
			return nil, false, cutShort(err)
		}
	}
}

// jsonList parses a list response while it arrives. The server writes the kind and the
// metadata of a built-in list before the items, those of a custom resource's list after them.
type jsonList struct {
	jsonInput
	stage jsonStage
	key   string
	list  listHead
	items bool
}

// jsonStage is what a jsonList expects next.
type jsonStage uint8

const (
	jsonOpen jsonStage = iota
	jsonFirstKey
	jsonKey
	jsonColon
	jsonValue
	jsonAfterValue
	jsonFirstItem
	jsonItem
	jsonAfterItem
	jsonEnd
)

func (d *jsonList) head() *listHead { return &d.list }

func (d *jsonList) next(block bool) ([]byte, bool, error) {
	for {
		c, ok, err := d.peek(block)
		if err == io.EOF && d.stage == jsonEnd {
			return nil, false, d.finish()
		}
		if !ok {
			return nil, false, cutShort(err)
		}
		item, ok, err := d.step(c, block)
		if !ok || item != nil {
			return item, ok, err
		}
	}
}

// finish returns an error unless the response was a list.
func (d *jsonList) finish() error {
	switch {
	case !d.items:
		return garbled(errNoItems)
	case !d.list.hasMeta:
		return garbled(errNoListMeta)
	}
	return io.EOF
}

// mark consumes a punctuation mark.
func (d *jsonList) mark(next jsonStage) ([]byte, bool, error) {
	d.in.drop(1)
	d.stage = next
	return nil, true, nil
}

// step parses the token that starts with c.
func (d *jsonList) step(c byte, block bool) ([]byte, bool, error) {
	switch {
	case d.stage == jsonOpen && c == '{':
		return d.mark(jsonFirstKey)
	case d.stage == jsonFirstKey && c == '}', d.stage == jsonAfterValue && c == '}':
		return d.mark(jsonEnd)
	case d.stage == jsonAfterValue && c == ',':
		return d.mark(jsonKey)
	case d.stage == jsonColon && c == ':':
		return d.mark(jsonValue)
	case d.stage == jsonValue && d.key == "items" && c == '[':
		if d.items {
			return nil, false, garbled(fmt.Errorf("read the list's items: %w", errTwice))
		}
		d.items = true
		return d.mark(jsonFirstItem)
	case d.stage == jsonFirstItem && c == ']', d.stage == jsonAfterItem && c == ']':
		return d.mark(jsonAfterValue)
	case d.stage == jsonAfterItem && c == ',':
		return d.mark(jsonItem)
	case d.stage == jsonFirstKey && c == '"', d.stage == jsonKey && c == '"':
		raw, ok, err := d.value(block)
		if !ok {
			return nil, false, err
		}
		if err := json.Unmarshal(raw, &d.key); err != nil {
			return nil, false, garbled(err)
		}
		d.stage = jsonColon
		return nil, true, nil
	case d.stage == jsonValue:
		raw, ok, err := d.value(block)
		if !ok {
			return nil, false, err
		}
		d.stage = jsonAfterValue
		if err := d.keep(raw); err != nil {
			return nil, false, garbled(fmt.Errorf("read the list's %s: %w", d.key, err))
		}
		return nil, true, nil
	case d.stage == jsonFirstItem, d.stage == jsonItem:
		if c == ',' || c == ']' || c == '}' || c == ':' {
			break
		}
		raw, ok, err := d.value(block)
		if !ok {
			return nil, false, err
		}
		d.stage = jsonAfterItem
		return raw, true, nil
	case d.stage == jsonEnd:
		return nil, false, garbled(errAfterEnd)
	}
	if d.stage == jsonOpen {
		return nil, false, garbled(errNotObject)
	}
	return nil, false, garbled(fmt.Errorf("%w: %q in a list's envelope", errSyntax, c))
}

// keep stores the members of the envelope that are needed and validates the others.
func (d *jsonList) keep(raw []byte) error {
	switch d.key {
	case "kind":
		return json.Unmarshal(raw, &d.list.kind)
	case "apiVersion":
		return json.Unmarshal(raw, &d.list.apiVersion)
	case "metadata":
		var meta metav1.ListMeta
		if d.list.hasMeta {
			return errTwice
		}
		if err := kjson.Unmarshal(raw, &meta); err != nil {
			return err
		}
		d.list.setMeta(meta.ResourceVersion, meta.Continue)
		return nil
	case "items":
		if string(raw) != "null" {
			return errNoItems
		}
		if d.items {
			return errTwice
		}
		d.items = true
		return nil
	}
	if !json.Valid(raw) {
		return errSyntax
	}
	return nil
}

// jsonFrames splits a watch into frames, which are JSON objects one after another.
type jsonFrames struct{ jsonInput }

func (d *jsonFrames) next(block bool) ([]byte, bool, error) {
	c, ok, err := d.peek(block)
	if !ok {
		return nil, false, err
	}
	if c != '{' {
		return nil, false, garbled(errNotObject)
	}
	return d.value(block)
}

// jsonWire is the JSON encoding.
type jsonWire struct{}

func (jsonWire) list(in *inbox) pageReader { return &jsonList{jsonInput: jsonInput{in: in}} }
func (jsonWire) frames(in *inbox) framer   { return &jsonFrames{jsonInput{in: in}} }

func (jsonWire) event(frame []byte) (event, error) {
	var e event
	s := scanner{b: frame}
	err := s.document(func(key []byte) error {
		switch string(key) {
		case "type":
			what, err := s.textOr(1)
			e.what = eventName(what)
			return err
		case "object":
			// The object is validated when it is decoded.
			var ext extent
			n, ok := ext.end(s.b[s.i:])
			if !ok || n == 0 {
				return s.fail()
			}
			e.object = s.b[s.i : s.i+n : s.i+n]
			s.i += n
			return nil
		}
		return s.value(1)
	})
	switch {
	case err != nil:
		return e, fmt.Errorf("read a watch event: %w", err)
	case e.what == "":
		return e, errors.New("a watch event has no type")
	case e.object == nil:
		return e, errors.New("a watch event has no object")
	}
	return e, nil
}

// meta reads the metadata of a bookmark. Most have nothing but a version, and each watch receives one every minute.
func (jsonWire) meta(raw []byte) (metav1.ObjectMeta, error) {
	if !bytes.Contains(raw, []byte(`"annotations"`)) && bytes.IndexByte(raw, '\\') < 0 {
		h, err := scanHeader(raw)
		return metav1.ObjectMeta{ResourceVersion: string(h.version)}, err
	}
	var o metav1.PartialObjectMetadata
	err := kjson.Unmarshal(raw, &o)
	return o.ObjectMeta, err
}

func (jsonWire) status(_ typeMeta, raw []byte) (metav1.Status, error) {
	var s metav1.Status
	if err := kjson.Unmarshal(raw, &s); err != nil {
		return s, err
	}
	if s.Kind != "Status" {
		return s, fmt.Errorf("expected a Status and got a %q", s.Kind)
	}
	return s, nil
}
