package kube

import (
	"errors"
	"fmt"
	"io"
)

const (
	// restBuffer is the buffer size of a stream with little traffic. Most watches are quiet
	// most of the time, and a program may have a thousand of them.
	restBuffer = 1 << 10
	// firstBuffer is the buffer size of a stream whose objects are small.
	firstBuffer = 32 << 10
	// calm is the number of consecutive small reads after which a stream counts as quiet.
	calm = 16
	// keptBuffer is the largest buffer that a stream keeps after a large object.
	keptBuffer = 1 << 20
	// maxObject bounds one encoded object. The server's own limit is a few MiB; a stream
	// that announces more is broken or hostile.
	maxObject = 64 << 20
)

var errTooLarge = fmt.Errorf("one object takes more than %d MiB", maxObject>>20)

// inbox buffers the part of a response that has arrived and was not consumed yet. The slice
// that data returns is valid until the next fill, so that an object is decoded from the
// buffer it arrived in. The buffer grows with the bytes that arrive, not with an announced
// length.
type inbox struct {
	r      io.Reader
	buf    []byte
	lo, hi int
	small  int   // consecutive reads that would have fitted into restBuffer
	err    error // the error that ended the response
	// hold reserves or returns memory beyond firstBuffer; nil means that there is no limit.
	hold func(beyond int) error
}

// reset starts reading another response into the same buffer.
func (b *inbox) reset(r io.Reader) {
	b.r, b.lo, b.hi, b.err = r, 0, 0, nil
}

// data returns the bytes that have arrived and were not dropped yet.
func (b *inbox) data() []byte { return b.buf[b.lo:b.hi] }

// drop consumes n bytes.
func (b *inbox) drop(n int) { b.lo += n }

// more reads at least one more byte. If block is false, it reads nothing and returns false.
func (b *inbox) more(block bool) (bool, error) {
	if !block {
		return false, nil
	}
	if err := b.fill(); err != nil {
		return false, err
	}
	return true, nil
}

// want reads until there are at least n bytes.
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

// makeRoom makes room after the data: it moves the data to the front, grows the buffer, or
// replaces a buffer that is larger than needed after a large object.
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

// claim reserves the memory for a buffer of the given size.
func (b *inbox) claim(size int) error {
	if b.hold == nil {
		return nil
	}
	return b.hold(max(0, size-firstBuffer))
}

// cutShort replaces the end of the input by an error, because more bytes were expected. It
// returns other errors unchanged.
func cutShort(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return garbled(fmt.Errorf("the stream was cut short: %w", io.ErrUnexpectedEOF))
	}
	return err
}
