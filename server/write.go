package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/fleet"
)

// item is one object of a list.
type item struct {
	cluster string
	entry   *fleet.Entry
	version string // under which it is shown
}

// A list is encoded in pieces, by several goroutines if it is large, of perWorker objects at least for each, and written in their order.
// A piece is up to together objects, or as many as reach pieceBytes, and an eighth of the list at most unless that is less than fewest: with
// pieces of 64 objects, a list of 100 was two, and nothing of it was written before the first was made.
const (
	together   = 64
	fewest     = 8
	pieceBytes = 512 << 10
	perWorker  = 16
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
			sorted, err = json.Marshal(map[string]any{"continue": l.meta.Continue, "resourceVersion": l.meta.ResourceVersion, "remainingItemCount": *l.meta.RemainingItemCount})
		}
		return []byte(`{"apiVersion":"` + version + `","items":[`), []byte(`],"kind":"` + kind + `","metadata":` + string(sorted) + "}\n"), err
	}
	return []byte(`{"kind":"` + kind + `","apiVersion":"` + version + `","metadata":` + string(meta) + `,"items":[`), []byte("]}\n"), nil
}

// piece encodes some of the items.
func (l *listing) piece(r *renderer, dst []byte, items []item, first bool) ([]byte, error) {
	var err error
	for i := range items {
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
func (l *listing) safePiece(r *renderer, dst []byte, items []item, first bool) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("encode objects of a list: it panicked: %v", p)
		}
	}()
	return l.piece(r, dst, items, first)
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

func (l *listing) writeItems(w io.Writer) error {
	if l.small() {
		return l.writeAlone(w)
	}
	workers := min(runtime.GOMAXPROCS(0), (len(l.items)+perWorker-1)/perWorker)
	type made struct {
		bytes []byte
		err   error
	}
	type order struct {
		items []item
		buf   []byte
		first bool
		done  chan made
	}
	var (
		orders = make(chan order)
		line   = make(chan chan made, 2*workers) // what is under way, in order; it bounds the memory
		quit   = make(chan struct{})
		wg     sync.WaitGroup
	)
	for range workers {
		render := l.render.clone()
		wg.Go(func() {
			for o := range orders {
				b, err := l.safePiece(render, o.buf, o.items, o.first)
				o.done <- made{b, err}
			}
		})
	}
	wg.Go(func() {
		defer close(line)
		defer close(orders)
		for at := 0; at < len(l.items); {
			n, buf := l.nextPiece(at)
			o := order{l.items[at : at+n], buf, at == 0, make(chan made, 1)}
			at += n
			select {
			case line <- o.done:
			case <-quit:
				return
			}
			select {
			case orders <- o:
			case <-quit:
				o.done <- made{err: errors.New("given up")}
				return
			}
		}
	})
	var err error
	for done := range line {
		m := <-done
		if err != nil {
			continue
		}
		if err = m.err; err == nil {
			_, err = w.Write(m.bytes)
			keepPiece(m.bytes)
		}
		if err != nil {
			close(quit)
		}
	}
	wg.Wait()
	return err
}

// writeAlone is writeItems for what is not worth a second goroutine.
func (l *listing) writeAlone(w io.Writer) error {
	for at := 0; at < len(l.items); {
		n, buf := l.nextPiece(at)
		b, err := l.piece(l.render, buf, l.items[at:at+n], at == 0)
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

// prettyUpTo is up to which size a list is printed for people, who would not read a longer one: it is made in memory first.
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
	if !nice && !l.small() {
		return l.stream(w, r, l.writeTo)
	}
	var b bytes.Buffer
	if err := l.writeTo(&b); err != nil {
		return err
	}
	if b.Len() < gzipFrom || nice {
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
	out := &patient{w, http.NewResponseController(w)}
	if !acceptsGzip(r) {
		if err := write(out); err != nil {
			panic(http.ErrAbortHandler) // it has begun: only a broken connection can still say that it is not whole
		}
		return nil
	}
	p := packer{w: out}
	err := write(&p)
	if err == nil {
		err = p.close()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
