package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// item is one object of a list.
type item struct {
	cluster string
	entry   *fleet.Entry
	version string // the version in the answer
}

// A list is encoded in pieces, several at a time if it is large, and written in order. A piece has up to maxPieceItems
// objects or about pieceBytes bytes. It has at most an eighth of the list, so that the first piece is written early,
// but at least minPieceItems objects.
const (
	maxPieceItems = 64
	minPieceItems = 8
	pieceBytes    = 512 << 10
)

// pieceBuffers recycles the buffers of pieces, which would otherwise be most of the garbage of a list.
var pieceBuffers = sync.Pool{New: func() any { return new([]byte) }}

// recyclePiece returns a buffer to the pool, unless a large object has made it large.
func recyclePiece(b []byte) {
	if cap(b) <= 2*pieceBytes {
		pieceBuffers.Put(&b)
	}
}

// nextPiece returns how many objects, beginning at index from, are the next piece, and a buffer for them.
func (l *listing) nextPiece(from int) (n int, buf []byte) {
	most := from + min(max(len(l.items)/8, minPieceItems), maxPieceItems)
	size := 0
	for from+n < min(most, len(l.items)) && size < pieceBytes {
		size += l.items[from+n].entry.Size
		n++
	}
	buf = (*pieceBuffers.Get().(*[]byte))[:0]
	if l.render.form == whole {
		buf = slices.Grow(buf, size+256*n) // a comma each, and what the view of all clusters adds
	}
	return n, buf
}

// listing is a list to be written.
type listing struct {
	gvk    schema.GroupVersionKind
	meta   metav1.ListMeta
	custom bool // a custom resource, whose lists have sorted members
	items  []item
	render *renderer

	work    *work  // encoding takes turns
	memory  *grant // held until the list is written
	streams bool   // it is written while it is encoded
}

// Memory that a list holds: for each item, and, if it is indented, for each byte of its objects, which is there
// unindented, indented and in the spare capacity of both buffers.
const (
	itemBytes   = 80
	prettyTimes = 4
)

// reserve takes the memory that is needed to write the list.
func (l *listing) reserve(indent bool) error {
	need := int64(pieceBytes)
	total := int64(0)
	for i := range l.items {
		need = max(need, int64(l.items[i].entry.Size))
		total += int64(l.items[i].entry.Size)
	}
	switch {
	case indent:
		need = prettyTimes * total
	case l.buffered():
		need = total
	}
	return l.memory.set(need + int64(len(l.items))*itemBytes)
}

// ends returns the text before and after the items.
func (l *listing) ends() (head, tail []byte, err error) {
	head, tail, err = l.frame()
	if len(l.items) == 0 && (l.render.form == metadata || l.render.form == asTable && l.render.plain()) {
		head = append(head[:len(head)-1], "null"...) // as an API server encodes an empty list in this form
		tail = tail[1:]
	}
	return head, tail, err
}

func (l *listing) frame() (head, tail []byte, err error) {
	if l.render.form == asTable {
		head, err = l.render.tableHead(nil, l.meta, true)
		return head, []byte("]}\n"), err
	}
	meta, err := json.Marshal(l.meta)
	if err != nil {
		return nil, nil, err
	}
	kind, version := l.gvk.Kind+"List", l.gvk.GroupVersion().String()
	if l.render.form == metadata {
		kind, version = "PartialObjectMetadataList", metaV1
	}
	if l.custom && l.render.form == whole {
		sorted, err := json.Marshal(map[string]any{"continue": l.meta.Continue, "resourceVersion": l.meta.ResourceVersion})
		if l.meta.RemainingItemCount != nil {
			sorted, err = json.Marshal(map[string]any{"continue": l.meta.Continue, "resourceVersion": l.meta.ResourceVersion,
				"remainingItemCount": *l.meta.RemainingItemCount})
		}
		return []byte(`{"apiVersion":"` + version + `","items":[`), []byte(`],"kind":"` + kind + `","metadata":` +
			string(sorted) + "}\n"), err
	}
	return []byte(`{"kind":"` + kind + `","apiVersion":"` + version + `","metadata":` + string(meta) +
		`,"items":[`), []byte("]}\n"), nil
}

// piece appends the encoding of some items to dst.
func (l *listing) piece(r *renderer, part *work, dst []byte, items []item, first bool) ([]byte, error) {
	var err error
	for i := range items {
		if err = part.pace(); err != nil {
			return nil, err
		}
		if i > 0 || !first {
			dst = append(dst, ',')
		}
		if dst, err = r.item(dst, items[i].cluster, items[i].entry, items[i].version, true); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// safePiece is piece for a goroutine of its own, where a panic would end the daemon.
func (l *listing) safePiece(r *renderer, part *work, dst []byte, items []item, first bool) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("encode objects of a list: panic: %v", p)
		}
	}()
	return l.piece(r, part, dst, items, first)
}

// writeTo writes the list. It never leaves an item out: if an object cannot be encoded, it returns an error, and the
// client sees an answer that ends too soon.
func (l *listing) writeTo(w io.Writer) error {
	head, tail, err := l.ends()
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if err := l.writeItems(w); err != nil {
		return err
	}
	_, err = w.Write(tail)
	return err
}

// writeItems writes the items, one piece after the other. If the list is streamed, pieces are encoded ahead.
func (l *listing) writeItems(w io.Writer) error {
	if l.streams {
		return l.writeAhead(w)
	}
	return l.writeInOrder(w)
}

// madePiece is a piece that another goroutine encodes. done receives once.
type madePiece struct {
	done   chan error
	bytes  []byte
	render *renderer
	extra  bool // its memory was taken in addition to what reserve took
}

// maxAhead is how many pieces of a list may be encoded ahead.
const maxAhead = 16

// writeAhead writes pieces while the next ones are encoded. Encoding takes turns of the work gate; writing to the
// client does not hold one. How many pieces are encoded ahead depends on the memory that is left; one is always
// allowed.
func (l *listing) writeAhead(w io.Writer) error {
	ctx, cancel := context.WithCancel(l.work.ctx)
	var (
		making  sync.WaitGroup
		pending []*madePiece
		idle    []*renderer
	)
	defer making.Wait()
	defer cancel()
	ahead := min(l.work.gate.slotsAlone+2, maxAhead)
	for at := 0; ; {
		for at < len(l.items) && len(pending) < ahead && (len(pending) == 0 || l.memory.tryAdd(pieceBytes)) {
			n, buf := l.nextPiece(at)
			p := &madePiece{done: make(chan error, 1), bytes: buf, extra: len(pending) > 0}
			if p.render = l.render.clone(); len(idle) > 0 {
				p.render, idle = idle[len(idle)-1], idle[:len(idle)-1]
			}
			items, first, part := l.items[at:at+n], at == 0, l.work.part(ctx)
			making.Go(func() { p.done <- l.make(p, part, items, first) })
			pending = append(pending, p)
			at += n
		}
		if len(pending) == 0 {
			return nil
		}
		p := pending[0]
		pending = pending[1:]
		if err := <-p.done; err != nil {
			return err
		}
		if _, err := w.Write(p.bytes); err != nil {
			return err
		}
		recyclePiece(p.bytes)
		idle = append(idle, p.render)
		if p.extra {
			l.memory.giveBack(pieceBytes)
		}
	}
}

// make encodes a piece in its own turns.
func (l *listing) make(p *madePiece, part *work, items []item, first bool) (err error) {
	if err := part.resume(); err != nil {
		return err
	}
	defer part.leave()
	p.bytes, err = l.safePiece(p.render, part, p.bytes, items, first)
	return err
}

// writeInOrder encodes and writes one piece after the other, in the turns of the request.
func (l *listing) writeInOrder(w io.Writer) error {
	for at := 0; at < len(l.items); {
		n, buf := l.nextPiece(at)
		b, err := l.piece(l.render, l.work, buf, l.items[at:at+n], at == 0)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
		recyclePiece(b)
		at += n
	}
	return nil
}

// prettyUpTo is the size up to which a list is indented, which has to be done in memory.
const prettyUpTo = 16 << 20

// atLeast reports whether the objects have at least so many bytes together.
func (l *listing) atLeast(size int) bool {
	for i := 0; i < len(l.items) && size > 0; i++ {
		size -= l.items[i].entry.Size
	}
	return size <= 0
}

// buffered reports whether the list is small enough to be encoded in memory before any of it is sent, so that an error
// can still be the answer.
func (l *listing) buffered() bool {
	if l.render.form == whole {
		return !l.atLeast(gzipFrom)
	}
	return len(l.items) <= maxPieceItems
}

// answer sends a list.
func (l *listing) answer(w http.ResponseWriter, r *http.Request) error {
	indent := pretty(r) && !l.atLeast(prettyUpTo)
	if err := l.reserve(indent); err != nil {
		return err
	}
	if !indent && !l.buffered() {
		l.streams = true
		return l.stream(w, r, l.writeTo)
	}
	var b bytes.Buffer
	if err := l.writeTo(&b); err != nil {
		return err
	}
	if b.Len() < gzipFrom || indent {
		l.work.leave()
		return writeObject(w, r, b.Bytes())
	}
	return l.stream(w, r, func(out io.Writer) error { _, err := out.Write(b.Bytes()); return err })
}

func (l *listing) stream(w http.ResponseWriter, r *http.Request, write func(io.Writer) error) error {
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", "no-cache, private")
	if r.Method == http.MethodHead {
		return nil
	}
	l.work.leave()
	l.work.answering()
	out := newDeadlineWriter(w)
	if !acceptsGzip(r) {
		if err := write(out); err != nil {
			panic(http.ErrAbortHandler) // the answer has begun: only a broken connection shows that it is incomplete
		}
		return nil
	}
	p := listCompressor{w: out, work: l.work}
	err := write(&p)
	if err == nil {
		err = p.close()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
