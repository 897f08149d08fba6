package server

import (
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// gzipFrom is how large an answer must be to be worth packing, as for an API server.
const gzipFrom = 128 << 10

// packer packs what turns out to be large enough.
type packer struct {
	w     *patient
	start []byte       // what was written while that is not known
	zip   *gzip.Writer // nil until it is
}

// Write takes a part of the answer.
func (p *packer) Write(b []byte) (int, error) {
	if p.zip != nil {
		return p.zip.Write(b)
	}
	if p.start = append(p.start, b...); len(p.start) < gzipFrom {
		return len(b), nil
	}
	h := p.w.Header()
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	var err error
	if p.zip, err = gzip.NewWriterLevel(p.w, gzip.BestSpeed); err == nil {
		_, err = p.zip.Write(p.start)
	}
	p.start = nil
	return len(b), err
}

// close ends the answer.
func (p *packer) close() error {
	if p.zip != nil {
		return p.zip.Close()
	}
	p.w.Header().Set("Content-Length", strconv.Itoa(len(p.start)))
	_, err := p.w.Write(p.start)
	return err
}
