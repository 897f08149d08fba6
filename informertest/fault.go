package informertest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
)

// Fault makes matching requests fail in a chosen way. The first group of fields selects the requests and how many of
// them; the other fields say what goes wrong, and several of them may be set. Frames and items count from 1; 0 means
// none.
type Fault struct {
	// Match selects requests; nil selects all.
	Match func(*http.Request) bool
	// Verbs selects requests by verb, as in Request.Verb; empty selects all.
	Verbs []string
	// Resource selects requests by resource, such as "pods"; "" selects all.
	Resource string
	// Times is how many requests fail; 0 means all until the fault is removed.
	Times int

	// Delay is how long the server waits before it handles the request.
	Delay time.Duration
	// Code is the HTTP status of the answer, sent with the matching Status object; 404 is plain text, as for a path that
	// is not served.
	Code int
	// Status is the answer's Status object, used instead of Code; its Code is the HTTP status.
	Status *metav1.Status
	// RetryAfter is the time that the client is asked to wait, sent with Code.
	RetryAfter time.Duration
	// AsEvent sends Code or Status to a watch as its first event, with HTTP 200.
	AsEvent bool
	// Refuse cuts the connection before anything is sent.
	Refuse bool
	// CutAfterBytes cuts the connection after this many bytes of the body.
	CutAfterBytes int
	// CutAfterFrames cuts a watch's connection after this many frames.
	CutAfterFrames int
	// CloseAtOnce ends a watch normally before its first event.
	CloseAtOnce bool
	// GarbageFrame replaces a watch's frame, or a list's whole body, by bytes that cannot be decoded.
	GarbageFrame int
	// DuplicateFrame sends a watch's frame twice.
	DuplicateFrame int
	// DropFrame omits a watch's frame.
	DropFrame int
	// Undecodable makes the object in a watch's frame, or a list's item, undecodable.
	Undecodable int
	// NoBookmarks suppresses all bookmarks of a watch, including the one that ends the initial events.
	NoBookmarks bool
	// RefuseInitialEvents answers a watch with sendInitialEvents as a server that does not support it: 422 Invalid. Other
	// requests are not affected.
	RefuseInitialEvents bool
	// StaleAt serves a get, a list or a watch's initial state as of an older version, as a replica that is behind does.
	StaleAt object.Version
}

// injected is a Fault that is in force.
type injected struct {
	Fault
	left    int
	endless bool
}

// Inject makes requests fail. If several faults match a request, the one injected first applies. The returned function
// removes the fault.
func (s *Server) Inject(f Fault) (remove func()) {
	in := &injected{Fault: f, left: f.Times, endless: f.Times == 0}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, in)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(o *injected) bool { return o == in })
	}
}

// fault returns the fault for a request and counts it as used once. Match is called without the lock, so that it may
// call the server's methods.
func (s *Server) fault(r *http.Request, req *Request) Fault {
	s.mu.Lock()
	candidates := slices.Clone(s.faults)
	s.mu.Unlock()
	for _, in := range candidates {
		if !in.matches(r, req) {
			continue
		}
		s.mu.Lock()
		live := in.endless || in.left > 0
		in.left--
		if !in.endless && in.left <= 0 {
			s.faults = slices.DeleteFunc(s.faults, func(o *injected) bool { return o == in })
		}
		s.mu.Unlock()
		if live {
			return in.Fault
		}
	}
	return Fault{}
}

func (in *injected) matches(r *http.Request, req *Request) bool {
	if len(in.Verbs) > 0 && !slices.Contains(in.Verbs, req.Verb) {
		return false
	}
	if in.Resource != "" && in.Resource != req.Resource.Resource {
		return false
	}
	if in.RefuseInitialEvents && req.Query.Get("sendInitialEvents") != "true" {
		return false
	}
	return in.Match == nil || in.Match(r)
}

// status returns the Status that the fault answers with, if any.
func (f *Fault) status(req *Request) (metav1.Status, bool) {
	switch {
	case f.Status != nil:
		return *f.Status, true
	case f.Code != 0:
		return statusFor(f.Code, f.RetryAfter, req.Verb, req.Resource.GroupResource(), req.Name), true
	}
	return metav1.Status{}, false
}

// faultyWriter cuts the connection after a number of bytes and records the status code.
type faultyWriter struct {
	http.ResponseWriter
	// left is how many bytes may still be written; negative for no limit.
	left    int
	onCode  func(int)
	written bool
}

func (w *faultyWriter) WriteHeader(code int) {
	if !w.written {
		w.written = true
		w.onCode(code)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *faultyWriter) Write(b []byte) (int, error) {
	if !w.written {
		w.WriteHeader(http.StatusOK)
	}
	if w.left < 0 || len(b) < w.left {
		if w.left > 0 {
			w.left -= len(b)
		}
		return w.ResponseWriter.Write(b)
	}
	w.ResponseWriter.Write(b[:w.left])
	w.abort()
	return 0, fmt.Errorf("connection cut")
}

func (w *faultyWriter) flush() { http.NewResponseController(w.ResponseWriter).Flush() }

// abort breaks the connection after flushing what was written.
func (w *faultyWriter) abort() {
	w.flush()
	panic(http.ErrAbortHandler)
}
