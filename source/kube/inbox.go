package kube

import (
	"errors"
	"fmt"
	"io"
)

const (
	// restBuffer is what a stream holds that has little to say: most watches are silent
	// for most of their time, and a program may have a thousand.
	restBuffer = 1 << 10
	// firstBuffer is what a stream holds while its objects are small.
	firstBuffer = 32 << 10
	// calm is after how many small reads in a row a stream counts as silent.
	calm = 16
	// keptBuffer is what a stream may go on holding after a large object.
	keptBuffer = 1 << 20
	// maxObject bounds one encoded object. The server's own bound is a few MiB; what
	// claims to be more is not an object but a broken or hostile stream.
	maxObject = 64 << 20
)

var errTooLarge = fmt.Errorf("one object takes more than %d MiB", maxObject>>20)

// inbox is the part of a response that has arrived and was not used yet. What
// data returns stays in place until the next fill, so that an object is decoded
// from the buffer it arrived in. The buffer grows with what does arrive, never
// with what a length prefix says will.
type inbox struct {
	r      io.Reader
	buf    []byte
	lo, hi int
	small  int   // how many reads in a row would have fitted in restBuffer
	err    error // why nothing more will arrive
	// hold asks for room beyond firstBuffer, or gives it back; nil asks nobody.
	hold func(beyond int) error
}

// reset starts over on another response with the same buffer.
func (b *inbox) reset(r io.Reader) {
	b.r, b.lo, b.hi, b.err = r, 0, 0, nil
}

// data is what has arrived.
func (b *inbox) data() []byte { return b.buf[b.lo:b.hi] }

// drop takes n bytes as used.
func (b *inbox) drop(n int) { b.lo += n }

// more gets at least one more byte. Where it must not block it gets none and
// says so.
func (b *inbox) more(block bool) (bool, error) {
	if !block {
		return false, nil
	}
	if err := b.fill(); err != nil {
		return false, err
	}
	return true, nil
}

// want gets until there are n bytes.
func (b *inbox) want(n int, block bool) (bool, error) {
	for b.hi-b.lo < n {
		if ok, err := b.more(block); !ok {
			return false, err
		}
	}
	return true, nil
}

func (b *inbox) fill() error {
	if b.err != nil {
		return b.err
	}
	if err := b.makeRoom(); err != nil {
		return err
	}
	if b.hi-b.lo > maxObject+firstBuffer {
		return garbled(errTooLarge)
	}
	for range 100 {
		n, err := b.r.Read(b.buf[b.hi:])
		b.hi += n
		b.err = err
		if b.small++; n >= restBuffer {
			b.small = 0
		}
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	b.err = io.ErrNoProgress
	return b.err
}

// makeRoom leaves room behind the data: by moving it to the front, by growing
// the buffer, or by giving back one that a large object left behind.
func (b *inbox) makeRoom() error {
	held, was := b.hi-b.lo, len(b.buf)
	switch {
	case b.buf == nil, held == 0 && len(b.buf) > restBuffer && b.small > calm:
		b.buf = make([]byte, restBuffer)
	case held == 0 && (len(b.buf) > keptBuffer || len(b.buf) < firstBuffer && b.small == 0):
		b.buf = make([]byte, firstBuffer)
	case held == 0, b.lo > 0 && held <= len(b.buf)/2:
		copy(b.buf, b.buf[b.lo:b.hi])
	case b.hi < len(b.buf):
		return nil
	default:
		if err := b.claim(2 * len(b.buf)); err != nil {
			return err
		}
		grown := make([]byte, 2*len(b.buf))
		copy(grown, b.buf[b.lo:b.hi])
		b.buf = grown
	}
	b.lo, b.hi = 0, held
	if len(b.buf) < was {
		return b.claim(len(b.buf))
	}
	return nil
}

// claim says how large the buffer is to be.
func (b *inbox) claim(size int) error {
	if b.hold == nil {
		return nil
	}
	return b.hold(max(0, size-firstBuffer))
}

// cutShort turns the end of the input in the middle of something into the error
// that says so, and leaves any other error as it is.
func cutShort(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return garbled(fmt.Errorf("the stream was cut short: %w", io.ErrUnexpectedEOF))
	}
	return err
}
