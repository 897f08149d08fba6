package server

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gzipFrom is the size from which answers are compressed, as at an API server.
const gzipFrom = 128 << 10

// gzipWriters recycles compressors: each has tables of more than a megabyte.
var gzipWriters = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return zip
}}

// listCompressor writes an answer and compresses it if it is large enough.
type listCompressor struct {
	w     *deadlineWriter
	work  *work        // compressing takes turns; writing to the client does not
	start []byte       // the beginning of the answer, until it reaches gzipFrom
	zip   *gzip.Writer // nil until then
	out   bytes.Buffer // compressed bytes that are not yet written
}

// Write adds a part of the answer.
func (p *listCompressor) Write(b []byte) (int, error) {
	if p.zip != nil {
		return len(b), p.compress(func() error { _, err := p.zip.Write(b); return err })
	}
	if p.start = append(p.start, b...); len(p.start) < gzipFrom {
		return len(b), nil
	}
	h := p.w.Header()
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	p.zip = gzipWriters.Get().(*gzip.Writer)
	p.zip.Reset(&p.out)
	err := p.compress(func() error { _, err := p.zip.Write(p.start); return err })
	p.start = nil
	return len(b), err
}

// compress calls do in a turn of its own and writes the compressed bytes.
func (p *listCompressor) compress(do func() error) error {
	if err := p.work.resume(); err != nil {
		return err
	}
	err := do()
	p.work.leave()
	if err != nil || p.out.Len() == 0 {
		return err
	}
	_, err = p.w.Write(p.out.Bytes())
	p.out.Reset()
	return err
}

// close finishes the answer.
func (p *listCompressor) close() error {
	if p.zip != nil {
		err := p.compress(p.zip.Close)
		gzipWriters.Put(p.zip)
		return err
	}
	p.w.Header().Set("Content-Length", strconv.Itoa(len(p.start)))
	_, err := p.w.Write(p.start)
	return err
}
