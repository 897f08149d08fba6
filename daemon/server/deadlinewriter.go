package server

import (
	"errors"
	"net/http"
	"time"
)

// minRate is how many bytes a second a client has to read on average, once an answer has been waiting for it for
// writeTimeout.
const minRate = 64 << 10

// deadlineWriter writes to a client that gets some time for each part, and cuts it off when it does not read, or
// reads too little in all: its answer holds memory, and the snapshots that it is made from.
type deadlineWriter struct {
	http.ResponseWriter
	ctl    *http.ResponseController
	sent   int64
	waited time.Duration // for the client, in all
}

func newDeadlineWriter(w http.ResponseWriter) *deadlineWriter {
	return &deadlineWriter{ResponseWriter: w, ctl: http.NewResponseController(w)}
}

// Write sends a part of an answer.
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

// allowance is how long the client may take to read n more bytes.
func (p *deadlineWriter) allowance(n int) time.Duration {
	earned := time.Duration(float64(p.sent+int64(n)) / minRate * float64(time.Second))
	return min(writeTimeout, writeTimeout+earned-p.waited)
}
