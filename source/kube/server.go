package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// server is the place of one resource on one API server.
type server struct {
	client    *http.Client
	url       url.URL
	resource  schema.GroupResource
	tweak     func(*metav1.ListOptions)
	userAgent string
}

func newServer(cfg *rest.Config, gvr schema.GroupVersionResource, o *Options) (*server, error) {
	if cfg == nil {
		return nil, errors.New("the config is nil; load one with clientcmd or rest.InClusterConfig")
	}
	if cfg.Host == "" {
		return nil, errors.New("the config has no Host; load a kubeconfig with clientcmd, or set Host to the API " +
			"server's URL")
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1    // whoever reads backs off; a second brake would only hide it
	cfg.Timeout = 0 // it would end a watch
	if o.UserAgent != "" {
		cfg.UserAgent = o.UserAgent
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	gv := gvr.GroupVersion()
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	if gv.Group == "" {
		cfg.APIPath = "/api"
	}
	base, prefix, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("the config's Host is not usable; set it to a URL such as https://127.0.0.1:6443: %w",
			bare(err))
	}
	client := o.HTTPClient
	if client == nil {
		if client, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, fmt.Errorf("the config's TLS or credentials are not usable; check the files it names: %w", bare(err))
		}
	}
	own := *client
	own.Timeout = 0
	s := &server{client: &own, url: *base, resource: gvr.GroupResource(), tweak: o.Tweak, userAgent: cfg.UserAgent}
	segments := []string{prefix}
	if o.Namespace != "" {
		segments = append(segments, "namespaces", o.Namespace)
	}
	s.url = *base.JoinPath(append(segments, gvr.Resource)...)
	return s, nil
}

// attempt says what is being attempted, for errors. The URL's query and user
// stay out of it: there may be a secret in them.
func (s *server) attempt(verb string) string {
	return fmt.Sprintf("%s %s on %s", verb, s.resource, s.url.Host)
}

// get sends one request and returns the answer with its encoding, or what is
// wrong, classified. The caller adds what was attempted.
func (s *server) get(ctx context.Context, verb string, lo metav1.ListOptions,
	accept string) (io.ReadCloser, wire, error) {
	if s.tweak != nil {
		s.tweak(&lo)
	}
	query, err := queryparams.Convert(&lo)
	if err != nil {
		return nil, nil, fmt.Errorf("write the request: %w", err)
	}
	u := s.url
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("write the request: %w", bare(err))
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", s.userAgent)
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, nil, s.unreachable(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, nil, s.refusal(verb, resp, lo.SendInitialEvents != nil)
	}
	w, err := wireFor(resp.Header.Get("Content-Type"))
	if err != nil {
		resp.Body.Close()
		return nil, nil, garbled(err)
	}
	return resp.Body, w, nil
}

// stream is what an open list and an open watch have in common: a context, the
// response that is being read, and the error that ended it.
type stream struct {
	srv    *server
	verb   string
	ctx    context.Context // of its requests
	parent context.Context // of its reader
	cancel func()          // ends ctx; nil where it is the reader's
	in     inbox

	allowed *Allowance // nil for no bound but that of each object

	mu     sync.Mutex
	body   io.Closer
	held   int         // of what is allowed
	closed atomic.Bool // set under mu
}

var errClosed = errors.New("it was closed by its reader")

func newStream(ctx context.Context, srv *server, verb string, allowed *Allowance) *stream {
	s := &stream{srv: srv, verb: verb, ctx: ctx, parent: ctx, allowed: allowed}
	if allowed != nil {
		s.in.hold = s.hold
	}
	return s
}

// ownRequests gives the stream a context of its own, which Close ends: for one that sends requests
// when it is open already. Who has a response only needs none, and a context that
// waits for another is half a kilobyte.
func (s *stream) ownRequests() { s.ctx, s.cancel = context.WithCancel(s.parent) }

// what says what is being attempted.
func (s *stream) what() string { return s.srv.attempt(s.verb) }

// hold changes how much of the allowance the stream has. A closed one has nothing.
func (s *stream) hold(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed.Load():
		return errClosed
	case n > s.held:
		if err := s.allowed.take(int64(n - s.held)); err != nil {
			return err
		}
	default:
		s.allowed.give(int64(s.held - n))
	}
	s.held = n
	return nil
}

// attach makes body the response that is read. It fails when the stream has
// been closed meanwhile.
func (s *stream) attach(body io.ReadCloser) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		body.Close()
		return errClosed
	}
	s.body = body
	s.in.reset(body)
	return nil
}

// release ends the response that was being read.
func (s *stream) release() {
	s.mu.Lock()
	body := s.body
	s.body = nil
	s.mu.Unlock()
	if body != nil {
		body.Close()
	}
}

// Close ends the stream and makes a blocked Read return. The response goes
// before the context: closing it waits until the transport has let go of it,
// which it does not when the context has ended.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed.Store(true)
	if s.held > 0 {
		s.allowed.give(int64(s.held))
		s.held = 0
	}
	s.mu.Unlock()
	s.release()
	if s.cancel != nil {
		s.cancel()
	}
	return nil
}

// alive fails when the reader's context has ended or the stream was closed.
func (s *stream) alive() error {
	if s.closed.Load() {
		return errClosed
	}
	return s.parent.Err()
}

// failure says why the stream ended, and ends what is left of it. Whatever the
// transport makes of a cancelled context, the context's own error is reported.
func (s *stream) failure(err error) error {
	closed := s.closed.Load()
	s.Close()
	switch {
	case err == io.EOF:
		return io.EOF
	case s.parent.Err() != nil:
		return fmt.Errorf("%s: %w", s.what(), s.parent.Err())
	case closed:
		return fmt.Errorf("%s: %w", s.what(), errClosed)
	}
	return broken(s.what(), err)
}
