package server

import (
	"errors"
	"net/http"
	"time"
)

// minRate is how many bytes per second a client has to read on average, once writes of its answer have taken
// writeTimeout in total.
const minRate = 64 << 10

// deadlineWriter writes an answer with a deadline for each write. It cuts off a client that does not read, or reads
// too slowly overall, because the answer holds memory and snapshots until it is written.
type deadlineWriter struct {
	http.ResponseWriter
	ctl    *http.ResponseController
	sent   int64
	waited time.Duration // total time of the writes
}

func newDeadlineWriter(w http.ResponseWriter) *deadlineWriter {
	return &deadlineWriter{ResponseWriter: w, ctl: http.NewResponseController(w)}
}

// Write sends a part of the answer.
func (p *deadlineWriter) Write(b []byte) (int, error) {
	begun := time.Now()
	if err := p.ctl.SetWriteDeadline(begun.Add(p.allowance(len(b)))); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := p.ResponseWriter.Write(b)
	p.sent += int64(n)
	p.waited += time.Since(begun)
	return n, err
}

// allowance returns how long the client may take to read n more bytes.
func (p *deadlineWriter) allowance(n int) time.Duration {
	earned := time.Duration(float64(p.sent+int64(n)) / minRate * float64(time.Second))
	return min(writeTimeout, writeTimeout+earned-p.waited)
}
