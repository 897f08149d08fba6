package fakeapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options are the size and speed of the fake.
type Options struct {
	Pods map[string]int // per cluster; default 30,000 in eu and 20,000 in us
	Tick time.Duration  // of /clusters?watch=true; default one second
	// History is how long ago the history begins; 0 means that the daemon has no data folder.
	History time.Duration
}

// Server is the fake. Use it as an http.Handler.
type Server struct {
	mux   *http.ServeMux
	tick  time.Duration
	began time.Time
	begin time.Time // of the history; zero without a data folder

	mu       sync.Mutex
	clusters map[string]*cluster
	version  int64
	log      []change
	oldest   int64         // older versions have expired
	moved    chan struct{} // closed at the next change
	cut      chan struct{} // closed to end all streams
	requests []string
	open     int // streams
	gaps     []Gap
}

// New returns a fake with the clusters eu and us.
func New(o Options) *Server {
	if o.Pods == nil {
		o.Pods = map[string]int{"eu": 30000, "us": 20000}
	}
	if o.Tick == 0 {
		o.Tick = time.Second
	}
	s := &Server{tick: o.Tick, began: time.Now(), clusters: map[string]*cluster{}, version: 1000,
		moved: make(chan struct{}), cut: make(chan struct{})}
	if o.History > 0 {
		s.begin = s.began.Add(-o.History)
	}
	for name, pods := range o.Pods {
		s.clusters[name] = newCluster(name, pods, s.began)
	}
	if us := s.clusters["us"]; us != nil {
		us.trouble()
	}
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("GET /clusters", s.getClusters)
	s.mux.HandleFunc("POST /clusters", s.postCluster)
	s.mux.HandleFunc("DELETE /clusters/{name}", s.deleteCluster)
	s.mux.HandleFunc("GET /fleet/", s.kubernetes)
	s.mux.HandleFunc("GET /clusters/{name}/", s.kubernetes)
	s.mux.HandleFunc("POST /fleet/apis/authentication.k8s.io/v1/selfsubjectreviews", s.review)
	s.mux.HandleFunc("GET /login/session",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, object{}) })
	return s
}

// ServeHTTP answers a request and records it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	s.mux.ServeHTTP(w, r)
}

// review answers who the user is.
func (s *Server) review(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusCreated, object{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
		"status": object{"userInfo": object{"username": "jane@example.com", "groups": []string{"platform", "on-call",
			"system:authenticated"}}}})
}

// Requests returns the requests that contain a text, in order.
func (s *Server) Requests(containing string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.Contains(r, containing) {
			found = append(found, r)
		}
	}
	return found
}

// Cut ends every stream, as a restart of the daemon does.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// Forget makes every version until now expire: pages and watches from there get 410.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
	s.log = nil
	close(s.cut)
	s.cut = make(chan struct{})
}

// Streams returns how many streams are open.
func (s *Server) Streams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// stream counts a stream until the returned function is called.
func (s *Server) stream() (end func()) {
	s.opened(1)
	return func() { s.opened(-1) }
}

func (s *Server) opened(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
}

// streams returns the channels that wake and end a stream.
func (s *Server) streams() (moved, cut <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved, s.cut
}

type object = map[string]any

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func status(code int, reason, message string) object {
	return object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": message,
		"reason": reason, "code": code}
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	reply(w, code, status(code, reason, message))
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
