package server

import (
	"errors"
	"net/http"
	"time"
)

// patient writes to a client that gets some time for each part, and is given up when it does not read: else it would hold
// the snapshots that its list is read from.
type patient struct {
	http.ResponseWriter
	ctl *http.ResponseController
}

// Write sends a part of an answer.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.ctl.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}
