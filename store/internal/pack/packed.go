package pack

import "fmt"

// Packed is one object in its packed form. It never changes, and any code may keep, copy and read it, also after
// Release.
type Packed struct {
	base *base
	data string
}

// A Ref is what reading packed data needs besides its bytes. A store keeps the data in one allocation with other bytes,
// and the Ref beside it.
type Ref struct{ base *base }

// Packed returns the packed object of the data that Pack returned together with r.
func (r Ref) Packed(data string) Packed { return Packed{r.base, data} }

// Append appends the original bytes to dst. The context must be the one that the object was packed with. An error
// means that it is a different one or that memory is damaged; dst is then returned as it was.
func (k Packed) Append(dst []byte, context string) ([]byte, error) {
	r := readings.Get().(*reading)
	defer r.done()
	var base []byte
	if k.base != nil {
		var err error
		if base, err = k.base.bytes(r); err != nil {
			return dst, fmt.Errorf("unpacking the base of an object: %w", err)
		}
	}
	out, err := r.append(dst, k.data, base, k.base, context, false)
	if err != nil {
		return dst, fmt.Errorf("unpacking an object of %d bytes: %w", len(k.data), err)
	}
	return out, nil
}

// Len returns the length of the original.
func (k Packed) Len() int {
	length := 0
	if k.base != nil {
		length = int(k.base.length)
	}
	n, ok := originalLen(k.data, length)
	if !ok {
		return 0
	}
	return n
}
