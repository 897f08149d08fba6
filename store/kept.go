package store

import (
	"fmt"
	"slices"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store/internal/pack"
)

// PackedObject is an object in the packed form of its store, for code that keeps it outside of the process. Its method
// Append returns the encoded bytes, given the text of PackedContext.
type PackedObject = pack.Packed

// PackedBase is what a PackedObject is a difference to. It has to be kept with the object, and so do its parents.
type PackedBase = pack.Base

// PackedBases makes packed objects from what was kept.
type PackedBases = pack.Bases

// PackedFormat is the version of the packed form. What was kept in another version cannot be read.
const PackedFormat = pack.Format

// NewPackedBases returns an empty PackedBases.
func NewPackedBases() *PackedBases { return pack.NewBases() }

// Packed returns the packed form of the object. ok is false in the other layouts, and for an object that is kept live.
func (e *Entry[T]) Packed() (obj PackedObject, ok bool) {
	if !e.packed() {
		return obj, false
	}
	obj, _, err := e.packedForm()
	return obj, err == nil
}

// PackWhole packs an object that is not kept packed, with the text of PackedContext.
func PackWhole(encoded []byte, context string) PackedObject { return pack.Whole(encoded, context) }

// PackedEntry is an entry of the packed layout that was kept outside of the process.
type PackedEntry struct {
	Key     object.Key
	Version object.Version
	UID     string
	Size    int
	Object  PackedObject
	// Indexed has the values of indexes, so that the object need not be decoded for them. Other indexes are computed.
	Indexed []IndexValues
}

// IndexValues are the values under which an index finds an object.
type IndexValues struct {
	Index  string
	Values []string
}

// EntryOf returns an entry that is in no store, for an object that was kept outside of the process. Reading a damaged
// object gives the zero T.
func EntryOf[T any](it *PackedEntry, codec *object.Codec[T]) *Entry[T] {
	p, _ := packedRecordOf[T](nil, it)
	p.inside.reader = &entryReader[T]{codec: codec, cfg: new(config[T])}
	p.inside.ref = pack.RefTo(it.Object)
	return &p.Entry
}

// StagePacked is Stage for an entry that was kept outside of the process. Its bases belong to the store from then on:
// each store needs PackedBases of its own. The store must be in the packed layout and have a codec.
func (w *Writer[T]) StagePacked(it *PackedEntry) error {
	w.must("StagePacked", replacing)
	if w.sh.cfg.layout != Packed || w.keeper.codec == nil {
		return fmt.Errorf("restore %s: the store is not in the packed layout, or has no codec; set Options.Layout and "+
			"Options.Codec", it.Key)
	}
	rec := w.keeper.take(it)
	s := staged[T]{rec: rec, ready: len(w.values)}
	if !w.useValues(it.Indexed) {
		obj, err := rec.restored()
		if err != nil {
			w.keeper.drop(rec)
			return fmt.Errorf("restore %s: %w", it.Key, err)
		}
		w.evaluate(it.Key, obj, 0)
	}
	s.values = w.replace.hold(w.values)
	clear(w.values)
	w.stageRecord(s)
	return nil
}

// useValues stores known index values in w.values. It returns false if those of an index are missing.
func (w *Writer[T]) useValues(known []IndexValues) bool {
	for i, name := range w.set.names {
		if w.set.funcs[i] == nil {
			continue
		}
		at := slices.IndexFunc(known, func(v IndexValues) bool { return v.Index == name })
		if at < 0 {
			clear(w.values)
			return false
		}
		w.values[i] = known[at].Values
	}
	return true
}

// restored decodes the object of a record that was kept outside of the process.
func (r *record[T]) restored() (obj T, err error) {
	encoded, err := r.appendPacked(nil)
	if err != nil {
		return obj, err
	}
	return tryDecode(r.extra.reader.codec, encoded)
}

// take makes the record of an entry that was kept outside of the process.
func (k *keeper[T]) take(it *PackedEntry) *record[T] {
	var p *packedRecord[T]
	p, k.line = packedRecordOf[T](k.line, it)
	p.inside.reader, p.inside.ref = k.readerOf(k.codec), k.packer.Take(it.Object)
	return &p.record
}

// packedRecordOf makes a record that has no reader yet. scratch may be nil, and is returned for the next call.
func packedRecordOf[T any](scratch []byte, it *PackedEntry) (p *packedRecord[T], line []byte) {
	line = append(scratch[:0], it.Key...)
	line = append(line, it.UID...)
	line = append(line, it.Version...)
	names := len(line)
	line = append(line, it.Object.Data()...)
	nk, nu := len(it.Key), len(it.UID)
	p = new(packedRecord[T])
	p.inside.line = string(line)
	p.Key, p.UID, p.Version = object.Key(p.inside.line[:nk]), p.inside.line[nk:nk+nu],
		object.Version(p.inside.line[nk+nu:names])
	p.Size, p.extra = it.Size, &p.inside
	return p, line
}

// indexedValues returns the values of a stored record in the indexes that read objects.
func (w *Writer[T]) indexedValues(rec *record[T]) []IndexValues {
	var out []IndexValues
	for i, name := range w.set.names {
		if w.set.funcs[i] == nil {
			continue
		}
		v := IndexValues{Index: name}
		for n := range rec.refs.len() {
			if r := rec.refs.at(n); r.index == uint32(i) {
				v.Values = append(v.Values, r.h.value)
			}
		}
		out = append(out, v)
	}
	return out
}

// PackedContext returns the text that the packed object was packed with.
func PackedContext(key, uid, version string) string { return key + uid + version }
