package object

// Item is one object as a source delivered it.
//
// A source that decodes sets Value. A source whose consumer may never need the decoded object, such as the packed
// layout, sets Encoded and Decode instead, and Object decodes it.
type Item[T any] struct {
	Key     Key
	Version Version
	// UID distinguishes an object from a later one with the same name. "" means unknown: it may be any object.
	UID string
	// Size is the length of the encoded object, or an estimate. Bounds in bytes are based on it.
	Size int
	// Encoded is the object as the source received it, if the source keeps it. The receiver owns it.
	Encoded []byte
	// Decode decodes Encoded. All items of a source share one function.
	Decode func(encoded []byte) (T, error)
	// Value is the decoded object. It is valid only if Decode is nil.
	Value T
	// Codec, if it is set, encodes and decodes the objects of the source.
	Codec *Codec[T]
	// Owned says that only the receiver references the object: a store may then rearrange its memory. An object that is
	// not owned is never written to.
	Owned bool
}

// Codec encodes and decodes objects. Both functions may be called from any goroutine.
type Codec[T any] struct {
	// Encode appends an encoded object to dst.
	Encode func(dst []byte, obj T) ([]byte, error)
	// Decode decodes bytes from Encode or from Item.Encoded.
	Decode func(encoded []byte) (T, error)
	// Lends says that decoded objects refer to the bytes from which they were decoded.
	Lends bool
}

// Object returns the object, and decodes it if necessary.
func (i *Item[T]) Object() (T, error) {
	if i.Decode != nil {
		return i.Decode(i.Encoded)
	}
	return i.Value, nil
}

// SameObject reports whether two UIDs may belong to the same object: they are equal, or one of them is unknown.
func SameObject(a, b string) bool {
	return a == b || a == "" || b == ""
}
