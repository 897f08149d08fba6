package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// maxWaiting is how many bytes of events may wait to be written.
	maxWaiting = 16 << 20
	// maxWrite is how many bytes are written at once, unless a single event is larger.
	maxWrite = 64 << 10
	// reportEvery is how often the daemon's log mentions dropped events.
	reportEvery = time.Minute
	// drainTimeout is how long Run continues to write after its context has ended.
	drainTimeout = 5 * time.Second
)

// Options configure a Log, with the meaning that kube-apiserver's flags have.
type Options struct {
	// Path is the file to write to; "-" means standard output. A new file is readable by its owner only; its folder
	// must exist.
	Path string
	// MaxSize is the size in megabytes at which the file is rotated; 0 means 100.
	MaxSize int
	// MaxAge is after how many days rotated files are removed; 0 means never.
	MaxAge int
	// MaxBackups is how many rotated files are kept; 0 means all.
	MaxBackups int
	// Logger receives what goes wrong.
	Logger *slog.Logger
}

// Log writes audit events.
type Log struct {
	out  io.WriteCloser
	log  *slog.Logger
	wake chan struct{} // there are waiting events; has a buffer of one

	mu      sync.Mutex
	waiting [][]byte
	size    int // of the waiting events
	counts  Counts
	said    time.Time // when the daemon's log last mentioned dropped events
	ended   bool

	broken bool // the last line in the file is incomplete; only Run uses it
}

// Counts says what happened to the events that were recorded.
type Counts struct {
	// Written is how many events were written, and Dropped how many were lost.
	Written, Dropped uint64
}

// Open opens the file of a log. It returns an error if the file cannot be written.
func Open(o Options) (*Log, error) {
	for name, n := range map[string]int{"size": o.MaxSize, "age": o.MaxAge, "number of backups": o.MaxBackups} {
		if n < 0 {
			return nil, fmt.Errorf("open the audit log: the maximum %s is %d; it must not be negative", name, n)
		}
	}
	if o.Path == "-" {
		return newLog(standardOutput{}, o.Logger), nil
	}
	if o.Path == "" {
		return nil, errors.New(`open the audit log: there is no path; give that of a file, or "-" for standard output`)
	}
	folder := filepath.Dir(o.Path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("open the audit log %s: there is no folder %s; make it, or choose another file", o.Path,
			folder)
	}
	l := newLog(nil, o.Logger)
	f, err := openFile(&o, l.log)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	l.out = f
	return l, nil
}

func newLog(out io.WriteCloser, log *slog.Logger) *Log {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Log{out: out, log: log, wake: make(chan struct{}, 1)}
}

// standardOutput is the standard output, which stays open.
type standardOutput struct{}

func (standardOutput) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (standardOutput) Close() error                { return nil }

// Record adds an event to the queue. It does not block: if the queue is full, or Run has returned, the event is
// dropped.
func (l *Log) Record(e *auditv1.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		l.drop(1, err)
		return
	}
	if line = append(line, '\n'); !l.enqueue(line) {
		l.drop(1, errors.New("the events are written more slowly than they occur"))
		return
	}
	select {
	case l.wake <- struct{}{}:
	default: // Run has not taken the last one yet
	}
}

func (l *Log) enqueue(line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.size+len(line) > maxWaiting {
		return false
	}
	l.waiting = append(l.waiting, line)
	l.size += len(line)
	return true
}

// Counts returns how many events were written and dropped so far.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Run writes events until ctx ends. Then it writes those that wait, for a few seconds at most, and closes the file. It
// returns an error if some could not be written by then.
func (l *Log) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-l.wake:
			l.write(func() bool { return ctx.Err() == nil })
		case <-ctx.Done():
		}
	}
	end := time.Now().Add(drainTimeout)
	l.write(func() bool { return time.Now().Before(end) })
	l.mu.Lock()
	left := len(l.waiting)
	l.ended, l.waiting, l.size = true, nil, 0
	l.counts.Dropped += uint64(left)
	l.mu.Unlock()
	if err := l.out.Close(); err != nil {
		return fmt.Errorf("close the audit log: %w", err)
	}
	if left > 0 {
		return fmt.Errorf("%d audit events were not written in time", left)
	}
	return nil
}

// write writes waiting events while there are some and more reports true.
func (l *Log) write(more func() bool) {
	var buf bytes.Buffer
	for more() {
		buf.Reset()
		n := l.take(&buf)
		if n == 0 {
			return
		}
		if l.broken {
			buf = *bytes.NewBuffer(append([]byte("\n"), buf.Bytes()...))
		}
		wrote, err := l.out.Write(buf.Bytes())
		if err != nil {
			l.broken = l.broken && wrote == 0 || wrote > 0 && buf.Bytes()[wrote-1] != '\n'
			l.drop(n, err)
			continue
		}
		l.broken = false
		l.mu.Lock()
		l.counts.Written += uint64(n)
		l.mu.Unlock()
	}
}

// take moves events from the queue to buf, as many as are written at once, and returns their number.
func (l *Log) take(buf *bytes.Buffer) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(l.waiting) && (n == 0 || buf.Len()+len(l.waiting[n]) <= maxWrite) {
		buf.Write(l.waiting[n])
		l.size -= len(l.waiting[n])
		l.waiting[n] = nil
		n++
	}
	if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
	return n
}

// drop counts events that are lost and, once in a while, mentions them in the daemon's log.
func (l *Log) drop(n int, why error) {
	l.mu.Lock()
	l.counts.Dropped += uint64(n)
	now, total := time.Now(), l.counts.Dropped
	say := l.said.IsZero() || now.Sub(l.said) >= reportEvery
	if say {
		l.said = now
	}
	l.mu.Unlock()
	if say {
		l.log.Error("audit events are lost", "error", why, "lost since the start", total)
	}
}
