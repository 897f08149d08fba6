package informertest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
)

// Fault is something that goes wrong. The first group of fields says with which
// requests and how often; the others say what, and several of them may be set.
// Numbers of frames and items count from 1; 0 means none.
type Fault struct {
	// Match chooses requests; nil takes all.
	Match func(*http.Request) bool
	// Verbs chooses requests by verb, as in Request.Verb; empty takes all.
	Verbs []string
	// Resource chooses requests by resource, such as "pods"; "" takes all.
	Resource string
	// Times is how many requests are hit; 0 hits until the fault is removed.
	Times int

	// Delay is how long the server waits before it does anything.
	Delay time.Duration
	// Code answers with an HTTP status and the Status object that belongs to it;
	// 404 is plain text, as for a path that is not served.
	Code int
	// Status answers with this Status instead; its Code is the HTTP status.
	Status *metav1.Status
	// RetryAfter goes with Code: the time that the client is asked to wait.
	RetryAfter time.Duration
	// AsEvent sends Code or Status to a watch as its first event, with HTTP 200.
	AsEvent bool
	// Refuse cuts the connection before anything is answered.
	Refuse bool
	// CutAfterBytes cuts the connection when so much of the body has been sent.
	CutAfterBytes int
	// CutAfterFrames cuts a watch's connection after so many frames.
	CutAfterFrames int
	// CloseAtOnce ends a watch regularly before its first event.
	CloseAtOnce bool
	// GarbageFrame replaces a watch's frame, or a list's whole body, by what
	// cannot be read.
	GarbageFrame int
	// DuplicateFrame sends a watch's frame twice.
	DuplicateFrame int
	// DropFrame leaves a watch's frame out.
	DropFrame int
	// Undecodable spoils the object in a watch's frame, or a list's item.
	Undecodable int
	// NoBookmarks keeps all bookmarks from a watch, the one that ends the initial
	// events included.
	NoBookmarks bool
	// RefuseInitialEvents answers a watch with sendInitialEvents as a server that
	// does not know it: 422 Invalid. Other requests are not touched.
	RefuseInitialEvents bool
	// StaleAt serves a get, a list or a watch's initial state as of an older
	// version, as a replica that lags behind does.
	StaleAt object.Version
}

// injected is a Fault at work.
type injected struct {
	Fault
	left    int
	endless bool
}

// Inject makes requests fail. Of several faults that match a request the one
// injected first counts. The returned function takes the fault back.
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

// fault finds the fault for a request and uses it up by one. Match is called
// without the lock, so that it may ask the server.
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

// status gives the Status that the fault answers with, if it does.
func (f *Fault) status(req *Request) (metav1.Status, bool) {
	switch {
	case f.Status != nil:
		return *f.Status, true
	case f.Code != 0:
		return statusFor(f.Code, f.RetryAfter, req.Verb, req.Resource.GroupResource(), req.Name), true
	}
	return metav1.Status{}, false
}

// faultyWriter cuts the connection after a number of bytes and notes the code.
type faultyWriter struct {
	http.ResponseWriter
	// left is how many bytes may still pass; negative for no limit.
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

// abort breaks the connection after what was written has gone out.
func (w *faultyWriter) abort() {
	w.flush()
	panic(http.ErrAbortHandler)
}
