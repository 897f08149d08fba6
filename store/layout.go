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

// The layouts. All read the same; they differ in memory and in what a read or a
// write costs.
const (
	// Live keeps the objects as they are given.
	Live Layout = iota
	// Shared lets equal parts of different objects be one. Reading costs nothing more.
	Shared
	// Packed keeps encoded bytes, each object as its difference to one like it, and
	// decodes when an object is read.
	Packed
)

var layoutNames = [...]string{Live: "live", Shared: "shared", Packed: "packed"}

// String gives the layout's name.
func (l Layout) String() string {
	if int(l) < len(layoutNames) {
		return layoutNames[l]
	}
	return fmt.Sprintf("Layout(%d)", uint8(l))
}

// LayoutStats say how a store's objects are kept.
type LayoutStats struct {
	Layout Layout
	// KeptLive counts the objects that were kept as they are since the store was made,
	// because they have no codec or do not come back from their encoding as they were.
	KeptLive uint64
	// Bytes is what the packed objects take after the last batch, with all that it needs to
	// read them. It is 0 in the other layouts, where nobody counts it.
	Bytes int64
}

// keeper brings objects into the store's layout. It belongs to the writer.
type keeper[T any] struct {
	cfg      *config[T]
	table    *share.Table // shared
	packer   *pack.Packer // packed
	codec    *object.Codec[T]
	homes    map[*object.Codec[T]]*home[T]
	line     []byte // scratch: what a record's strings and bytes are cut from
	encoding []byte // scratch
}

func newKeeper[T any](cfg *config[T], opts *Options[T]) *keeper[T] {
	k := &keeper[T]{cfg: cfg, codec: opts.Codec}
	k.reset()
	return k
}

// reset forgets what objects have in common.
func (k *keeper[T]) reset() {
	switch k.cfg.layout {
	case Shared:
		k.table = share.NewTable()
	case Packed:
		for _, h := range k.homes { // whoever keeps an entry keeps its home
			h.cache.clear()
		}
		k.packer = pack.New()
		k.homes = make(map[*object.Codec[T]]*home[T])
	}
}

// count tells readers what is packed. The number is theirs, and not the packer: a snapshot that
// outlives the store must not hold on to that.
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
			k.cfg.complain(it.Key, err)
		}
	case Shared:
		s := new(sharedRecord[T])
		rec = &s.record
		rec.fill(it)
		// An object that nobody owns but us is changed in place, any other is copied.
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
	if rec.packed() { // at last: from here on others know the record
		rec.extra.home.cache.add(&rec.Entry, it.Value)
	}
	return rec
}

// drop says that a record is stored no longer. Whoever still holds it can go on
// reading it.
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
	errNoCodec  = errors.New("the source gives no codec; set one with Options.Codec, or choose another layout")
	errNotExact = errors.New("the object does not come back from its encoding as it was")
)

// pack keeps an item packed: key, uid, version and bytes in one allocation.
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
	k.line, ref = k.packer.PackInto(k.line, encoded, string(k.line))
	line := string(k.line)
	nk, nu := len(it.Key), len(it.UID)
	rec.Key, rec.UID, rec.Version = object.Key(line[:nk]), line[nk:nk+nu], object.Version(line[nk+nu:names])
	rec.inside.home, rec.inside.ref, rec.inside.line = k.homeOf(codec), ref, line
	var zero T
	rec.obj, rec.extra = zero, &rec.inside
	return nil
}

// encode encodes an object that did not come with its bytes, and makes sure that it
// comes back from them as it is.
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
		return nil, fmt.Errorf("decode what the object was encoded to: %w", err)
	}
	if !share.Equal(back, obj) {
		return nil, fmt.Errorf("%w: %s differs", errNotExact, share.Diff(back, obj))
	}
	return encoded, nil
}

// tryEncode and tryDecode turn a panic of a codec into an error, as callIndex does for index
// functions: the writer is in the middle of a batch.
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

func (k *keeper[T]) homeOf(codec *object.Codec[T]) *home[T] {
	h := k.homes[codec]
	if h == nil {
		h = &home[T]{codec: codec, cfg: k.cfg, cache: newReadCache[T](k.cfg.readCache)}
		k.homes[codec] = h
	}
	return h
}
