package server

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gzipFrom is how large an answer must be to be worth packing, as for an API server.
const gzipFrom = 128 << 10

// gzipWriters are kept for the next answer: each has tables of more than a megabyte.
var gzipWriters = sync.Pool{New: func() any {
	zip, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return zip
}}

// listCompressor packs what turns out to be large enough.
type listCompressor struct {
	w     *deadlineWriter
	work  *work        // packing takes turns; writing to the client does not
	start []byte       // what was written while that is not known
	zip   *gzip.Writer // nil until it is
	out   bytes.Buffer // what is packed and not yet written
}

// Write takes a part of the answer.
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

// pack does some packing in a turn of its own and writes what comes out.
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

// close ends the answer.
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
