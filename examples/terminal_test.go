package main

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"
)

// patience is how long a line, or the end of a program, is waited for.
const patience = time.Minute

var errNothing = errors.New("nothing more was printed for " + patience.String())

// terminal takes what a program prints and gives it line by line.
type terminal struct {
	mu      sync.Mutex
	text    strings.Builder // the line that is not ended yet
	lines   []string
	closed  bool
	changed chan struct{}
}

func newTerminal() *terminal { return &terminal{changed: make(chan struct{}, 1)} }

// Write takes text from any goroutine.
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

// close says that no more comes.
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

// next waits for a line. The end is io.EOF.
func (t *terminal) next() (string, error) {
	timeout := time.NewTimer(patience)
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
