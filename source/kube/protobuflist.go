package kube

import (
	"bytes"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listStage is the part of a list that a protobufList is parsing.
type listStage uint8

const (
	listStart listStage = iota
	listEnvelope
	listItems
)

// protobufList parses a list response while it arrives.
type protobufList struct {
	in    *inbox
	stage listStage
	left  int // bytes left of the list message, which is field 2 of the envelope
	list  listHead
}

func (d *protobufList) head() *listHead { return &d.list }

func (d *protobufList) next(block bool) ([]byte, bool, error) {
	for {
		switch d.stage {
		case listStart:
			if ok, err := d.in.want(len(magic), block); !ok {
				return nil, false, cutShort(err)
			}
			if !bytes.HasPrefix(d.in.data(), magic) {
				return nil, false, garbled(errNoMagic)
			}
			d.in.drop(len(magic))
			d.stage = listEnvelope
		case listEnvelope:
			if ok, err := d.envelopeField(block); !ok {
				return nil, false, err
			}
		case listItems:
			if d.left == 0 {
				d.stage = listEnvelope
				continue
			}
			item, ok, err := d.listField(block)
			if !ok || item != nil {
				return item, ok, err
			}
		}
	}
}

// envelopeField reads one field of the envelope. The end of the input between two fields
// is the end of the response.
func (d *protobufList) envelopeField(block bool) (bool, error) {
	f, ok, err := d.start(block)
	if err == io.EOF && len(d.in.data()) == 0 && d.list.complete {
		if !d.list.hasMeta {
			return false, garbled(errNoListMeta)
		}
		return false, io.EOF
	}
	if !ok {
		return false, cutShort(err)
	}
	if f.num == 2 && f.typ == protowire.BytesType {
		if d.list.complete {
			return false, garbled(fmt.Errorf("read the list: %w", errTwice))
		}
		d.in.drop(f.head)
		d.left, d.stage = f.size, listItems
		d.list.complete = d.list.complete || f.size == 0
		return true, nil
	}
	payload, ok, err := d.payload(f, block)
	if !ok {
		return false, err
	}
	if f.num == 1 && f.typ == protowire.BytesType {
		kind, err := parseTypeMeta(payload)
		if err != nil {
			return false, garbled(fmt.Errorf("read the list's kind: %w", err))
		}
		d.list.typeMeta = kind
	}
	return true, nil
}

// listField reads one field of the list. It returns items and stores the metadata.
func (d *protobufList) listField(block bool) ([]byte, bool, error) {
	f, ok, err := d.start(block)
	if !ok {
		return nil, false, cutShort(err)
	}
	if f.head > d.left || f.size > d.left-f.head {
		return nil, false, garbled(errOverrun)
	}
	payload, ok, err := d.payload(f, block)
	if !ok {
		return nil, false, err
	}
	d.left -= f.head + f.size
	if d.left == 0 {
		d.list.complete = true
	}
	switch {
	case f.typ != protowire.BytesType:
	case f.num == 1:
		if d.list.hasMeta {
			return nil, false, garbled(fmt.Errorf("read the list's metadata: %w", errTwice))
		}
		var meta metav1.ListMeta
		if err := meta.Unmarshal(payload); err != nil {
			return nil, false, garbled(fmt.Errorf("read the list's metadata: %w", err))
		}
		d.list.setMeta(meta.ResourceVersion, meta.Continue)
	case f.num == 2:
		return payload, true, nil
	}
	return nil, true, nil
}

// start parses the tag and length of the next field without consuming them.
func (d *protobufList) start(block bool) (field, bool, error) {
	for {
		f, err := parseField(d.in.data())
		if err == nil {
			return f, true, nil
		}
		if err != errShort {
			return field{}, false, garbled(err)
		}
		if ok, err := d.in.more(block); !ok {
			return field{}, false, err
		}
	}
}

// payload consumes a field and returns its payload.
func (d *protobufList) payload(f field, block bool) ([]byte, bool, error) {
	if f.size > maxObject {
		return nil, false, garbled(errTooLarge)
	}
	if ok, err := d.in.want(f.head+f.size, block); !ok {
		return nil, false, cutShort(err)
	}
	b := d.in.data()[f.head : f.head+f.size : f.head+f.size]
	d.in.drop(f.head + f.size)
	return b, true, nil
}
