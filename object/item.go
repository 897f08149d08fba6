package object

// Item is one object as a source delivered it.
//
// A source that decodes fills Value. A source that has the encoded bytes and a
// consumer that may never need the object decoded (the packed layout, a byte
// for byte mirror) fills Encoded and Decode instead, and Value is made when
// Object is called.
type Item[T any] struct {
	Key     Key
	Version Version
	// UID tells an object from a later one of the same name. "" means unknown,
	// and unknown differs from nothing.
	UID string
	// Size is the length of the encoded object, or an estimate: what bounds in
	// bytes are counted with.
	Size int
	// Encoded is the object as it came off the wire, if the source keeps it. The
	// receiver owns it.
	Encoded []byte
	// Decode turns Encoded into an object. It is one function shared by all
	// items of a source, so that an item costs no closure.
	Decode func(encoded []byte) (T, error)
	// Value is the decoded object; it counts only where Decode is nil.
	Value T
	// Codec, where it is set, encodes and decodes objects like this one. It is one for
	// all items of a source.
	Codec *Codec[T]
	// Owned says that nobody but the receiver holds the object: a store may lay out
	// its memory anew. An object that is not owned is never written to.
	Owned bool
}

// Codec turns objects into bytes and back. Both functions may be called by any
// goroutine.
type Codec[T any] struct {
	// Encode appends an encoded object to dst.
	Encode func(dst []byte, obj T) ([]byte, error)
	// Decode gives the object of encoded bytes, which are those of Encode or those
	// that a source delivered as Item.Encoded.
	Decode func(encoded []byte) (T, error)
	// Lends says that decoded objects hold on to the bytes they were decoded from.
	Lends bool
}

// Object returns the object, decoding it first where that is still to be done.
func (i *Item[T]) Object() (T, error) {
	if i.Decode != nil {
		return i.Decode(i.Encoded)
	}
	return i.Value, nil
}

// SameObject reports whether two UIDs may belong to one object: they are equal,
// or one of them is not known.
func SameObject(a, b string) bool {
	return a == b || a == "" || b == ""
}
