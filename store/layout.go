package store

import (
	"errors"
	"fmt"

	"github.com/mirador-k8s/mirador/internal/share"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store/internal/pack"
)

// Layout is the form in which a store keeps its objects.
type Layout uint8

// The layouts. Their contents are the same; they differ in memory and in the cost of reads and writes.
const (
	// Live keeps the objects as they are.
	Live Layout = iota
	// Shared stores equal parts of different objects once. Reads cost nothing more.
	Shared
	// Packed keeps encoded bytes, each object as its difference to a similar one, and decodes objects when they are
	// read.
	Packed
)

var layoutNames = [...]string{Live: "live", Shared: "shared", Packed: "packed"}

// String returns the layout's name.
func (l Layout) String() string {
	if int(l) < len(layoutNames) {
		return layoutNames[l]
	}
	return fmt.Sprintf("Layout(%d)", uint8(l))
}

// LayoutStats describe how a store keeps its objects.
type LayoutStats struct {
	Layout Layout
	// KeptLive counts the objects since the store was made that were kept live because they have no codec or because
	// their codec does not restore them exactly.
	KeptLive uint64
	// Bytes is the memory of the packed objects after the last batch, including what is needed to read them. It is 0
	// in the other layouts.
	Bytes int64
}

// keeper makes records in the store's layout. Only the writer uses it.
type keeper[T any] struct {
	cfg      *config[T]
	table    *share.Table // shared
	packer   *pack.Packer // packed
	codec    *object.Codec[T]
	readers  map[*object.Codec[T]]*entryReader[T]
	line     []byte // scratch of pack
	encoding []byte // scratch
}

func newKeeper[T any](cfg *config[T], opts *Options[T]) *keeper[T] {
	k := &keeper[T]{cfg: cfg, codec: opts.Codec}
	k.reset()
	return k
}

// reset drops what objects have in common.
func (k *keeper[T]) reset() {
	switch k.cfg.layout {
	case Shared:
		k.table = share.NewTable()
	case Packed:
		for _, h := range k.readers { // entries that outlive the reset refer to them
			h.cache.clear()
		}
		k.packer = pack.New()
		k.readers = make(map[*object.Codec[T]]*entryReader[T])
	}
}

// count publishes the size of the packed objects. Readers have the number and not the packer, which a snapshot that
// outlives the store must not keep.
func (k *keeper[T]) count() {
	if k.packer != nil {
		k.cfg.bytes.Store(k.packer.Stats().Bytes())
	}
}

// keep makes the record of an item.
func (k *keeper[T]) keep(it *object.Item[T]) *record[T] {
	var rec *record[T]
	switch k.cfg.layout {
	case Packed:
		p := new(packedRecord[T])
		rec = &p.record
		rec.fill(it)
		if err := k.pack(p, it); err != nil {
			k.cfg.keptLive.Add(1)
			k.cfg.reportObject(it.Key, err)
		}
		if max(cap(k.line), cap(k.encoding)) > maxBuffer {
			k.line, k.encoding = nil, nil
		}
	case Shared:
		s := new(sharedRecord[T])
		rec = &s.record
		rec.fill(it)
		// An owned object is changed in place, any other is copied.
		var obj any
		obj, s.uses = k.table.Share(it.Value, it.Owned)
		if obj, ok := obj.(T); ok {
			rec.obj = obj
		}
	default:
		rec = new(record[T])
		rec.fill(it)
	}
	if k.cfg.onWritten != nil {
		k.watch(&rec.Entry, it)
	}
	if rec.packed() { // last, because other goroutines can read the record from here on
		rec.extra.reader.cache.add(&rec.Entry, it.Value)
	}
	return rec
}

// drop releases a record that is no longer stored. Readers that hold it can continue to read it.
func (k *keeper[T]) drop(rec *record[T]) {
	if rec == nil {
		return
	}
	rec.Verify()
	switch {
	case k.cfg.layout == Shared:
		k.table.Release(rec.sharedUses())
	case rec.packed():
		if packed, _, err := rec.packedForm(); err == nil {
			k.packer.Release(packed)
		}
	}
}

var (
	errNoKey    = errors.New("the object has no key")
	errNoCodec  = errors.New("the source provides no codec; set one with Options.Codec, or choose another layout")
	errNotExact = errors.New("decoding the encoded object does not restore it exactly")
)

// pack fills a record with a packed item: key, UID, version and data in one allocation.
func (k *keeper[T]) pack(rec *packedRecord[T], it *object.Item[T]) error {
	codec := it.Codec
	if codec == nil {
		codec = k.codec
	}
	switch {
	case codec == nil:
		return errNoCodec
	case it.Key == "":
		return errNoKey
	}
	encoded := it.Encoded
	if encoded == nil {
		var err error
		if encoded, err = k.encode(codec, it.Value); err != nil {
			return err
		}
	}
	k.line = append(k.line[:0], it.Key...)
	k.line = append(k.line, it.UID...)
	k.line = append(k.line, it.Version...)
	names := len(k.line)
	var ref pack.Ref
	k.line, ref = k.packer.Pack(k.line, encoded, string(k.line))
	line := string(k.line)
	nk, nu := len(it.Key), len(it.UID)
	rec.Key, rec.UID, rec.Version = object.Key(line[:nk]), line[nk:nk+nu], object.Version(line[nk+nu:names])
	rec.inside.reader, rec.inside.ref, rec.inside.line = k.readerOf(codec), ref, line
	var zero T
	rec.obj, rec.extra = zero, &rec.inside
	return nil
}

// encode encodes an object that came without its bytes, and verifies that decoding restores it exactly.
func (k *keeper[T]) encode(codec *object.Codec[T], obj T) ([]byte, error) {
	encoded, err := tryEncode(codec, k.encoding[:0], obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	k.encoding = encoded
	trial := encoded
	if codec.Lends {
		trial = append([]byte(nil), encoded...)
	}
	back, err := tryDecode(codec, trial)
	if err != nil {
		return nil, fmt.Errorf("decode the encoded object: %w", err)
	}
	if !share.Equal(back, obj) {
		return nil, fmt.Errorf("%w: %s differs", errNotExact, share.Diff(back, obj))
	}
	return encoded, nil
}

// tryEncode and tryDecode turn a panic of a codec into an error, because the writer may be in a batch.
func tryEncode[T any](codec *object.Codec[T], dst []byte, obj T) (encoded []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			encoded, err = nil, fmt.Errorf("the codec panicked: %v", p)
		}
	}()
	return codec.Encode(dst, obj)
}

func tryDecode[T any](codec *object.Codec[T], encoded []byte) (obj T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the codec panicked: %v", p)
		}
	}()
	return codec.Decode(encoded)
}

func (k *keeper[T]) readerOf(codec *object.Codec[T]) *entryReader[T] {
	h := k.readers[codec]
	if h == nil {
		h = &entryReader[T]{codec: codec, cfg: k.cfg, cache: newReadCache[T](k.cfg.readCache)}
		k.readers[codec] = h
	}
	return h
}
