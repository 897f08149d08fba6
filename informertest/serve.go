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

// errRefused is the error of dialling a server that was stopped, the same as for a socket.
var errRefused error = syscall.ECONNREFUSED

// Serve serves s on a loopback socket and returns a config for it. stop cuts every connection and returns when all
// handlers have ended. Serve panics if it cannot listen on the loopback interface.
func Serve(s *Server) (cfg *rest.Config, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("informertest: listening on the loopback interface: %v", err))
	}
	return &rest.Config{Host: "http://" + l.Addr().String(), QPS: -1}, serveOn(s, l)
}

// serveOn runs an http.Server on a listener until the returned function is called, which waits for the server's
// goroutine and all handlers to end.
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
