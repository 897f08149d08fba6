package informertest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"syscall"

	"k8s.io/client-go/rest"
)

// errRefused is what dialling a server that is gone gives, as a socket would.
var errRefused error = syscall.ECONNREFUSED

// Serve serves s on a socket of the loopback interface and returns a config
// for it. stop cuts every connection and returns when the server has let go. It
// panics where no loopback socket can be had: nothing can be tested there.
func Serve(s *Server) (cfg *rest.Config, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("informertest: listening on the loopback interface: %v", err))
	}
	return &rest.Config{Host: "http://" + l.Addr().String(), QPS: -1}, serveOn(s, l)
}

// serveOn runs an http.Server on a listener until the returned function is
// called, which waits for the server's goroutine and every handler to end.
func serveOn(s *Server, l net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	handlers := newGate()
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !handlers.enter() {
				panic(http.ErrAbortHandler)
			}
			defer handlers.leave()
			s.ServeHTTP(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	return func() {
		cancel()
		srv.Close()
		<-done
		handlers.shut()
	}
}
