package kube

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// restingBody is a response that says when there is something to read: one piece after the other.
type restingBody struct {
	t      *testing.T
	in     *inbox
	pieces [][]byte
}

func (b *restingBody) WaitForData() {
	if b.in.buf != nil {
		b.t.Errorf("a stream that waits has a buffer of %d bytes", len(b.in.buf))
	}
}

func (b *restingBody) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; len(b.pieces[0]) == 0 {
		b.pieces = b.pieces[1:]
	}
	return n, nil
}

func TestAStreamAtRestHasNoBuffer(t *testing.T) {
	large := bytes.Repeat([]byte("large "), firstBuffer/3)
	in := &inbox{}
	body := &restingBody{t: t, in: in, pieces: [][]byte{[]byte("one"), []byte("two"), large}}
	for range 3 * calm { // after so many small pieces, the stream counts as quiet again
		body.pieces = append(body.pieces, []byte("small"))
	}
	want := bytes.Join(body.pieces, nil)
	in.reset(body)
	var got []byte
	for small := 0; ; {
		err := in.fill()
		got = append(got, in.data()...)
		in.drop(len(in.data()))
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		if small++; small < 3 && len(in.buf) != restBuffer {
			t.Errorf("a stream with little traffic has a buffer of %d bytes", len(in.buf))
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want %d", len(got), len(want))
	}
	if len(in.buf) > restBuffer {
		t.Errorf("a quiet stream has a buffer of %d bytes", len(in.buf))
	}
}
