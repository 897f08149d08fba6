package feed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Server answers watches inside the process. With files it starts no goroutine: the client reads from the file itself.
type Server struct {
	// Open returns the response to a watch that starts with the state, in a form.
	Open func(form Form) (io.ReadCloser, error)
	// After is what a watch sends after the state, piece by piece; nil for nothing.
	After <-chan []byte
}

// FromFiles serves the files of n pods in a folder.
func FromFiles(dir string, n int) *Server {
	return &Server{Open: func(form Form) (io.ReadCloser, error) { return os.Open(File(dir, form, n)) }}
}

// Generated serves n pods of a number of templates that are made while they are read.
func Generated(n, templates int) *Server {
	return &Server{Open: func(form Form) (io.ReadCloser, error) { return readAhead(NewStream(form, n, templates)), nil }}
}

// Config returns the config of a client of this server, with protobuf if the client supports it and without a rate
// limit.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "http://feed.invalid", Transport: s, QPS: -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}

// RoundTrip answers a watch with the state, or with an empty stream if no state was requested. Lists are not
// supported: both sides use sendInitialEvents, as they do by default.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if query.Get("watch") != "true" && query.Get("watch") != "1" {
		return nil, fmt.Errorf("%s: this server answers only watches", req.URL)
	}
	form, media := JSON, "application/json"
	if strings.Contains(req.Header.Get("Accept"), "protobuf") {
		form, media = Protobuf, "application/vnd.kubernetes.protobuf;stream=watch"
	}
	b := &body{ctx: req.Context(), after: s.After, closed: make(chan struct{}), read: true}
	if query.Get("sendInitialEvents") == "true" {
		state, err := s.Open(form)
		if err != nil {
			return nil, err
		}
		b.state, b.read = state, false
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {media}}, Body: b, Request: req, ContentLength: -1,
	}, nil
}

// body is the state, what follows it, and then an idle stream until the client closes it.
type body struct {
	ctx    context.Context
	state  io.ReadCloser // may be nil
	read   bool          // all of the state was read
	after  <-chan []byte
	piece  []byte // the unread part of what follows the state
	once   sync.Once
	closed chan struct{}
}

func (b *body) Read(p []byte) (int, error) {
	if !b.read {
		n, err := b.state.Read(p)
		if err == io.EOF {
			b.read, err = true, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	for len(b.piece) == 0 {
		select {
		case b.piece = <-b.after:
		case <-b.closed:
			return 0, io.EOF
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n := copy(p, b.piece)
	b.piece = b.piece[n:]
	return n, nil
}

func (b *body) Close() error {
	var err error
	b.once.Do(func() {
		close(b.closed)
		if b.state != nil {
			err = b.state.Close()
		}
	})
	return err
}
