package informertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
)

// The simulated wire is an http.RoundTripper. A request waits until the simulator has it answered; the bytes of the
// answer wait until the simulator delivers them, a list's in pieces and a watch's frame by frame. The server behind it
// is a Server: its history, lists, watches and encodings are the ones that Pipe and Serve use.

// frame is one undelivered frame of a watch.
type frame struct {
	what    kwatch.EventType
	key     object.Key
	version uint64
	uid     string
	corrupt bool
	// initialEnd marks the bookmark that ends the initial state.
	initialEnd bool
	bytes      []byte
}

// exchange is one request and its answer.
type exchange struct {
	s       *simulation
	id      int
	verb    string
	initial bool   // a watch with sendInitialEvents
	more    bool   // a page of a list after the first
	asked   string // the requested version
	req     *http.Request
	at      time.Time

	answered   bool
	answeredAt time.Time
	code       int
	err        error
	resp       *http.Response
	held       bool // the stream is silent until another event
	whole      bool // the readable bytes are exactly one frame
	// undecodable says that this frame's object does not decode, which must be reported.
	undecodable bool
	heldUntil   time.Time
	bad         string // what is wrong with the answer; "" for nothing

	rest   []byte // the part of a list that was not delivered yet
	frames []frame
	inbox  []byte // delivered bytes that were not read yet
	queued []frame
	end    error // what the reader gets when inbox is empty; nil while it is open
	closed bool
	unread bool // closed before everything was read

	watch    *watch
	deadline time.Time
	marks    bookmarkTimes
	nextMark time.Time // when its next bookmark is due; zero for never
	unmarked bool      // bookmarks were withheld
	spoke    time.Time // when a frame was last delivered, or when the watch was opened
	lossy    bool      // a frame is missing in the middle
	stated   bool      // the initial state, or the whole list, was delivered
	version  uint64
	epoch    int // the history's epoch when the request was answered
	writes   [][]byte
}

var errCut = errors.New("the connection was cut")

// RoundTrip sends a request and waits for its answer.
func (s *simulation) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := parseRequest(r)
	ex := &exchange{s: s, verb: rec.Verb, req: r, at: time.Now(), asked: rec.Query.Get("resourceVersion"),
		initial: rec.Query.Get("sendInitialEvents") == "true", more: rec.Query.Get("continue") != ""}
	s.mu.Lock()
	s.requests++
	ex.id = s.requests
	s.exchanges = append(s.exchanges, ex)
	s.note("request %d: %s version=%q initial=%t more=%t", ex.id, ex.verb, ex.asked, ex.initial, ex.more)
	s.judge.request(ex)
	s.mu.Unlock()
	s.waitFor(r.Context(), func() bool { return ex.answered })
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Context().Err() != nil: // takes precedence over the answer, as in a real transport
		ex.shut()
		s.note("request %d: cancelled", ex.id)
		return nil, context.Cause(r.Context())
	case ex.err != nil:
		ex.closed = true
		s.judge.noticed(ex)
		return nil, ex.err
	}
	if ex.code != http.StatusOK {
		s.judge.noticed(ex)
	}
	return ex.resp, nil
}

// Read returns delivered bytes.
func (ex *exchange) Read(p []byte) (int, error) {
	s := ex.s
	ctx := ex.req.Context()
	for {
		if err := ctx.Err(); err != nil {
			s.mu.Lock()
			s.judge.closedEarly(ex)
			s.mu.Unlock()
			return 0, err
		}
		s.mu.Lock()
		n, err, ok := ex.take(p)
		s.mu.Unlock()
		if ok {
			return n, err
		}
		s.waitFor(ctx, func() bool { return len(ex.inbox) > 0 || ex.end != nil || ex.closed })
	}
}

func (ex *exchange) take(p []byte) (n int, err error, ok bool) {
	if len(ex.inbox) == 0 {
		switch {
		case ex.closed:
			return 0, http.ErrBodyReadAfterClose, true
		case ex.end != nil:
			if ex.end != io.EOF {
				ex.s.judge.noticed(ex)
			} else {
				ex.s.judge.read(ex, 0)
			}
			return 0, ex.end, true
		}
		return 0, nil, false
	}
	n = copy(p, ex.inbox)
	ex.inbox = ex.inbox[n:]
	ex.s.judge.read(ex, n)
	return n, nil, true
}

// Close closes the exchange on the reader's side.
func (ex *exchange) Close() error {
	ex.s.mu.Lock()
	defer ex.s.mu.Unlock()
	ex.shut()
	return nil
}

func (ex *exchange) shut() {
	ex.unread = ex.unread || len(ex.inbox) > 0
	if !ex.closed && (ex.verb == "list" || ex.initial) && (!ex.stated || len(ex.inbox) > 0) {
		ex.s.judge.aborted++
	}
	ex.closed = true
	ex.rest, ex.frames, ex.inbox = nil, nil, nil
	if ex.watch != nil {
		ex.watch.close()
		ex.watch = nil
	}
}

// over reports whether nothing more will happen on the exchange.
func (ex *exchange) over() bool { return ex.closed || ex.answered && ex.err != nil }

// broken returns the error that a reader gets when the connection was cut: a network error, or what net/http makes of
// a body that ends too soon.
func (ex *exchange) broken() error {
	if ex.id%2 == 0 {
		return io.ErrUnexpectedEOF
	}
	return errCut
}

// cut breaks the connection.
func (ex *exchange) cut(why string) {
	if ex.end != nil || ex.closed {
		return
	}
	ex.bad, ex.rest, ex.frames = why, nil, nil
	ex.end = ex.broken()
	ex.s.note("request %d: cut: %s", ex.id, why)
	if ex.watch != nil {
		ex.watch.close()
		ex.watch = nil
	}
}

// finish ends an answer normally.
func (ex *exchange) finish() {
	ex.end = io.EOF
	ex.s.note("request %d: end", ex.id)
	if ex.verb == "watch" {
		ex.s.judge.watchEnds++
	}
	if ex.watch != nil {
		ex.watch.close()
		ex.watch = nil
	}
}

// Header, WriteHeader and Write make the exchange an http.ResponseWriter.
func (ex *exchange) Header() http.Header { return ex.resp.Header }

// WriteHeader records the status code.
func (ex *exchange) WriteHeader(code int) {
	if ex.code == 0 {
		ex.code = code
	}
}

// Write records what the server sends.
func (ex *exchange) Write(b []byte) (int, error) {
	ex.WriteHeader(http.StatusOK)
	ex.writes = append(ex.writes, bytes.Clone(b))
	return len(b), nil
}

// answer makes the server answer a request, with or without a fault.
func (s *simulation) answer(ex *exchange, fault Fault) {
	ex.answered, ex.answeredAt, ex.epoch = true, time.Now(), s.model.epoch()
	if fault.Refuse {
		ex.err = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
		ex.bad = "refused"
		s.note("request %d: refused", ex.id)
		return
	}
	ex.resp = &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: ex,
		ContentLength: -1, Request: ex.req}
	if ex.verb == "watch" && fault.Code == 0 {
		s.openStepped(ex, &fault)
	} else {
		s.serveWhole(ex, fault)
	}
	ex.resp.StatusCode, ex.resp.Status = ex.code, fmt.Sprint(ex.code)
	if ex.code != http.StatusOK {
		ex.bad = fmt.Sprintf("HTTP %d", ex.code)
	}
	s.note("request %d: answered %d at %d", ex.id, ex.code, ex.version)
}

// serveWhole answers everything but a successful watch: the answer is complete at once, and delivered in pieces.
func (s *simulation) serveWhole(ex *exchange, fault Fault) {
	fault.Times = 1
	take := s.server.Inject(fault)
	defer take()
	ex.version = s.listVersion(ex, fault)
	s.server.ServeHTTP(ex, ex.req)
	ex.rest = bytes.Join(ex.writes, nil)
	ex.writes = nil
	if ex.code != http.StatusOK {
		ex.inbox, ex.rest, ex.end = ex.rest, nil, io.EOF
	}
}

// listVersion returns the version that a list will have.
func (s *simulation) listVersion(ex *exchange, fault Fault) uint64 {
	if fault.StaleAt != "" {
		v, _ := versionOf(string(fault.StaleAt))
		return v
	}
	if t := ex.req.URL.Query().Get("continue"); t != "" {
		if p, err := decodePage(t); err == nil && p.Version > 0 {
			return uint64(p.Version)
		}
	}
	return s.server.history.version
}

// openStepped opens a watch whose frames the simulator delivers.
func (s *simulation) openStepped(ex *exchange, fault *Fault) {
	rec := parseRequest(ex.req)
	w := &faultyWriter{ResponseWriter: ex, left: -1, onCode: func(int) {}}
	f, err := negotiate(ex.req, s.res)
	var opened *watch
	var timeout time.Duration
	var failure error
	c := &call{s: s.server, w: w, r: ex.req, req: rec, res: s.res, form: f, fault: fault}
	if err == nil {
		opened, timeout, failure, err = c.open()
	}
	if err != nil {
		writeError(w, ex.req, err)
		ex.inbox, ex.writes, ex.end = bytes.Join(ex.writes, nil), nil, io.EOF
		return
	}
	ex.watch, ex.deadline, ex.spoke = opened, time.Now().Add(timeout), time.Now()
	ex.marks = bookmarkTimes{period: apiServerPeriod, end: ex.deadline}
	ex.takeMark()
	opened.sendHeader()
	if failure == nil && !ex.initial && opened.cursor > s.server.history.version {
		// A restored server has no history up to that version. A real server waits until it has passed the version, and the
		// client never learns what it missed. No promise can be kept then, so this one returns an error.
		failure = apierrors.NewResourceExpired("the version is of a history that was replaced")
	}
	if st, ok := fault.status(rec); ok {
		failure = &apierrors.StatusError{ErrStatus: st}
	}
	if failure != nil {
		opened.sendStatus(statusOf(failure))
		ex.bad = "ERROR event"
		ex.frames = append(ex.frames, frame{what: kwatch.Error, bytes: bytes.Join(ex.writes, nil)})
		ex.writes = nil
		opened.close()
		return
	}
	ex.version = opened.cursor
	opened.onFrame = func(t kwatch.EventType, e *entry) {
		ex.queued = append(ex.queued, frame{what: t, key: e.key, version: e.version, uid: e.uid, corrupt: e.corrupt})
	}
}

// pump makes a watch produce the frames that are due.
func (ex *exchange) pump(mark bool) {
	w := ex.watch
	ending := w.initialEnd
	changes, marked, _, _ := w.poll()
	if err := w.tell(changes, marked || mark); err != nil {
		panic(fmt.Sprintf("informertest: the model server cannot encode what it holds: %v", err))
	}
	for i, b := range ex.writes {
		f := ex.queued[i]
		f.bytes = b
		if ending && f.what == kwatch.Bookmark {
			f.initialEnd, ending = true, false
		}
		ex.frames = append(ex.frames, f)
	}
	ex.writes, ex.queued = nil, nil
}

// takeMark reports whether a bookmark is due, and sets the time of the next one.
func (ex *exchange) takeMark() bool {
	due := ex.markDue()
	if now := time.Now(); due || ex.nextMark.IsZero() && ex.marks.sent == 0 {
		ex.nextMark, _ = ex.marks.after(now)
	}
	return due
}

func (ex *exchange) markDue() bool { return !ex.nextMark.IsZero() && !time.Now().Before(ex.nextMark) }

// hasOutput reports whether pump would produce a frame.
func (ex *exchange) hasOutput() bool {
	w := ex.watch
	return w != nil && (w.initial != nil || w.initialEnd || w.cursor < ex.s.server.history.version ||
		w.seen != w.res.bookmarks || ex.markDue())
}
