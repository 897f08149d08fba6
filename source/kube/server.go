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

// server sends requests for one resource to one API server.
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
	cfg.QPS = -1    // no client-side rate limit: the reader has its own backoff
	cfg.Timeout = 0 // a timeout would end watches
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

// attempt describes a request for errors. It omits the query and the user of the URL, which
// may contain a secret.
func (s *server) attempt(verb string) string {
	return fmt.Sprintf("%s %s on %s", verb, s.resource, s.url.Host)
}

// get sends one request and returns the response body and its encoding. Errors are
// classified; the caller adds the result of attempt.
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

// stream is the common part of an open list and an open watch: a context, the response that
// is being read, and the error that ended it.
type stream struct {
	srv    *server
	verb   string
	ctx    context.Context // of the requests
	parent context.Context // of the reader
	cancel func()          // ends ctx; nil if ctx is parent
	in     inbox

	allowed *Allowance // nil for no common bound

	mu     sync.Mutex
	body   io.Closer
	held   int         // bytes taken from allowed
	closed atomic.Bool // set under mu
}

var errClosed = errors.New("the stream was closed by its reader")

func newStream(ctx context.Context, srv *server, verb string, allowed *Allowance) *stream {
	s := &stream{srv: srv, verb: verb, ctx: ctx, parent: ctx, allowed: allowed}
	if allowed != nil {
		s.in.hold = s.hold
	}
	return s
}

// ownRequests gives the stream its own context, which Close cancels, so that Close ends
// later requests too. A watch sends no later requests and saves the memory of the context.
func (s *stream) ownRequests() { s.ctx, s.cancel = context.WithCancel(s.parent) }

// what describes the stream's request for errors.
func (s *stream) what() string { return s.srv.attempt(s.verb) }

// hold changes how much of the allowance the stream has taken. A closed stream has none.
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

// attach makes body the response that is read. It fails if the stream was closed meanwhile.
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

// release closes the response that was being read.
func (s *stream) release() {
	s.mu.Lock()
	body := s.body
	s.body = nil
	s.mu.Unlock()
	if body != nil {
		body.Close()
	}
}

// Close ends the stream and makes a blocked Read return. It closes the response before it
// cancels the context: closing waits until the transport has released the response, but not
// if the context was cancelled before.
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

// alive returns an error if the reader's context has ended or the stream was closed.
func (s *stream) alive() error {
	if s.closed.Load() {
		return errClosed
	}
	return s.parent.Err()
}

// failure closes the stream after err and returns the error for the reader. If the reader's
// context has ended, that is the context's error, whatever the transport returned.
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
