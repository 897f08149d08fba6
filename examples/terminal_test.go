package main

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"
)

// outputTimeout is how long the tests wait for a line or for the end of a program.
const outputTimeout = time.Minute

var errNothing = errors.New("nothing more was printed for " + outputTimeout.String())

// terminal collects the output of a program and returns it line by line.
type terminal struct {
	mu      sync.Mutex
	text    strings.Builder // the incomplete last line
	lines   []string
	closed  bool
	changed chan struct{}
}

func newTerminal() *terminal { return &terminal{changed: make(chan struct{}, 1)} }

// Write may be called from any goroutine.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range strings.SplitAfter(string(p), "\n") {
		t.text.WriteString(line)
		if strings.HasSuffix(line, "\n") {
			t.lines = append(t.lines, strings.TrimSuffix(t.text.String(), "\n"))
			t.text.Reset()
		}
	}
	t.signal()
	return len(p), nil
}

// close ends the output.
func (t *terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > 0 {
		t.lines = append(t.lines, t.text.String())
		t.text.Reset()
	}
	t.closed = true
	t.signal()
}

func (t *terminal) signal() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// next waits for a line. It returns io.EOF at the end of the output.
func (t *terminal) next() (string, error) {
	timeout := time.NewTimer(outputTimeout)
	defer timeout.Stop()
	for {
		line, err := t.take()
		if err == nil || errors.Is(err, io.EOF) {
			return line, err
		}
		select {
		case <-t.changed:
		case <-timeout.C:
			return "", err
		}
	}
}

func (t *terminal) take() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) > 0 {
		line := t.lines[0]
		t.lines = t.lines[1:]
		return line, nil
	}
	if t.closed {
		return "", io.EOF
	}
	return "", errNothing
}
