package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json" // which tells metadata from Metadata, as the server does
)

var (
	errNotObject = errors.New("a JSON object was expected and something else came")
	errNoItems   = errors.New("the answer has no items: it is not a list")
	errAfterEnd  = errors.New("something follows where the list has ended")
	errTwice     = errors.New("it comes twice, and one of both would be lost")
)

// jsonInput reads the pieces of JSON off an inbox. Each method uses up nothing
// until the whole piece is there, so that it can be called again.
type jsonInput struct {
	in  *inbox
	ext extent
}

// peek gives the next byte that is no white space.
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

// value uses up the value at the front, whatever it is.
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

// jsonList takes a list response apart while it arrives. The server writes the
// kind and the metadata of a built-in list in front of the items, those of a
// custom resource's list behind them.
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

// finish says whether what has ended was a list.
func (d *jsonList) finish() error {
	switch {
	case !d.items:
		return garbled(errNoItems)
	case !d.list.hasMeta:
		return garbled(errNoListMeta)
	}
	return io.EOF
}

// mark steps over a punctuation mark.
func (d *jsonList) mark(next jsonStage) ([]byte, bool, error) {
	d.in.drop(1)
	d.stage = next
	return nil, true, nil
}

// step reads the piece that starts with c.
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

// keep notes a member of the envelope that matters and checks any other.
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

// jsonFrames cuts a watch into frames: one object after another.
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

// jsonWire reads what the API server writes as JSON.
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
			// The object's own check comes with its decoding.
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
		return e, errors.New("a watch event does not say what happened")
	case e.object == nil:
		return e, errors.New("a watch event has no object")
	}
	return e, nil
}

func (jsonWire) meta(raw []byte) (metav1.ObjectMeta, error) {
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
