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
	version string // under which it is shown
}

// A list is encoded in pieces, some of them at a time if it is large, and written in their order.
// A piece is up to together objects, or as many as reach pieceBytes, and an eighth of the list at most unless that is
// less than fewest: with pieces of 64 objects, a list of 100 was two, and nothing of it was written before the first
// was made.
const (
	together   = 64
	fewest     = 8
	pieceBytes = 512 << 10
)

// pieceBuffers are where pieces are made. Made anew for each list, and grown to their size, a list of 100 pods
// of 10 KB left 5 MB for the collector, and that took more of the processors than the list itself.
var pieceBuffers = sync.Pool{New: func() any { return new([]byte) }}

// keepPiece lets a buffer be used again, unless one large object has made it large.
func keepPiece(b []byte) {
	if cap(b) <= 2*pieceBytes {
		pieceBuffers.Put(&b)
	}
}

// nextPiece says how many objects, from one on, are the next piece, and gives a buffer with room for them.
func (l *listing) nextPiece(from int) (n int, buf []byte) {
	most := from + min(max(len(l.items)/8, fewest), together)
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

// listing is a list that is about to be written.
type listing struct {
	gvk    schema.GroupVersionKind
	meta   metav1.ListMeta
	custom bool // its kind is served as maps are encoded: with sorted members
	items  []item
	render *renderer

	work    *work  // the turns in which it is made
	memory  *grant // what it holds meanwhile
	streams bool   // it is written while it is made
}

// Memory that a list holds: for each item, and for a person who reads it, each byte as it is, as it is printed and as
// it grows.
const (
	itemBytes   = 80
	prettyTimes = 4
)

// reserve takes the memory that the list cannot be written without.
func (l *listing) reserve(nice bool) error {
	need := int64(pieceBytes)
	total := int64(0)
	for i := range l.items {
		need = max(need, int64(l.items[i].entry.Size))
		total += int64(l.items[i].entry.Size)
	}
	switch {
	case nice:
		need = prettyTimes * total
	case l.small():
		need = total
	}
	return l.memory.set(need + int64(len(l.items))*itemBytes)
}

// ends gives what stands before and after the items.
func (l *listing) ends() (head, tail []byte, err error) {
	head, tail, err = l.frame()
	if len(l.items) == 0 && (l.render.form == metadata || l.render.form == asTable && l.render.plain()) {
		head = append(head[:len(head)-1], "null"...) // as an API server says that there are none
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

// piece encodes some of the items.
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

// safePiece is piece for a goroutine of its own, where a panic about one object would end the daemon.
func (l *listing) safePiece(r *renderer, part *work, dst []byte, items []item, first bool) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("encode objects of a list: it panicked: %v", p)
		}
	}()
	return l.piece(r, part, dst, items, first)
}

// writeTo writes the list. What is written has no gaps: where an object cannot be encoded it is an
// error, and the client sees an answer that ends too soon.
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

// writeItems writes the items: one piece after the other, or, while the list is streamed, some of them made ahead.
func (l *listing) writeItems(w io.Writer) error {
	if l.streams {
		return l.writeAhead(w)
	}
	return l.writeAlone(w)
}

// madePiece is a piece that goroutine makes. Its channel receives once.
type madePiece struct {
	done   chan error
	bytes  []byte
	render *renderer
	extra  bool // its memory was taken beside what the list has in any case
}

// maxAhead is how many pieces of a list are made ahead at most.
const maxAhead = 16

// writeAhead writes pieces while the next ones are made. Each is made in turns of the work gate, and none is held
// while the client is written to. How many are made ahead depends on the memory that is left: a list goes on with one.
func (l *listing) writeAhead(w io.Writer) error {
	ctx, cancel := context.WithCancel(l.work.ctx)
	var (
		making  sync.WaitGroup
		pending []*madePiece
		idle    []*renderer
	)
	defer making.Wait()
	defer cancel()
	ahead := min(l.work.gate.lent+2, maxAhead)
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
		keepPiece(p.bytes)
		idle = append(idle, p.render)
		if p.extra {
			l.memory.giveBack(pieceBytes)
		}
	}
}

// make encodes a piece in turns of its own.
func (l *listing) make(p *madePiece, part *work, items []item, first bool) (err error) {
	if err := part.resume(); err != nil {
		return err
	}
	defer part.leave()
	p.bytes, err = l.safePiece(p.render, part, p.bytes, items, first)
	return err
}

// writeAlone writes what is made in memory first, in the turns of the request itself.
func (l *listing) writeAlone(w io.Writer) error {
	for at := 0; at < len(l.items); {
		n, buf := l.nextPiece(at)
		b, err := l.piece(l.render, l.work, buf, l.items[at:at+n], at == 0)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return err
		}
		keepPiece(b)
		at += n
	}
	return nil
}

// prettyUpTo is up to which size a list is printed for people, who would not read a longer one: it is made in memory
// first.
const prettyUpTo = 16 << 20

// reaches reports whether the objects together are at least so large.
func (l *listing) reaches(size int) bool {
	for i := 0; i < len(l.items) && size > 0; i++ {
		size -= l.items[i].entry.Size
	}
	return size <= 0
}

// small reports whether the list is made in memory before any of it is sent, so that whatever goes wrong can be said.
func (l *listing) small() bool {
	if l.render.form == whole {
		return !l.reaches(gzipFrom)
	}
	return len(l.items) <= together
}

// answer sends a list.
func (l *listing) answer(w http.ResponseWriter, r *http.Request) error {
	nice := pretty(r) && !l.reaches(prettyUpTo)
	if err := l.reserve(nice); err != nil {
		return err
	}
	if !nice && !l.small() {
		l.streams = true
		return l.stream(w, r, l.writeTo)
	}
	var b bytes.Buffer
	if err := l.writeTo(&b); err != nil {
		return err
	}
	if b.Len() < gzipFrom || nice {
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
			panic(http.ErrAbortHandler) // it has begun: only a broken connection can still say that it is not whole
		}
		return nil
	}
	p := packer{w: out, work: l.work}
	err := write(&p)
	if err == nil {
		err = p.close()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
