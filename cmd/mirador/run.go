package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

const (
	// filesEvery is how often kubeconfigs are looked at.
	filesEvery = 2 * time.Second
	// drainTimeout is how long requests that are being answered may take at the end.
	drainTimeout = 10 * time.Second
)

// service is what runs while mirador serves.
type service struct {
	fleet     *fleet.Fleet
	server    *server.Server
	followers []*fleet.Follower
	files     *credentials
	log       *slog.Logger
}

// run serves until ctx ends or a part fails, and ends everything in the order in which nobody gets half an answer: no
// more connections are accepted, watches end, requests that are being answered are finished, and the clusters that
// their answers come from end last. SIGHUP has all files read again.
func (d *service) run(ctx context.Context, listener net.Listener) error {
	// What takes requests and follows files ends with front, and what they need with back.
	front, stopFront := context.WithCancel(ctx)
	defer stopFront()
	back, stopBack := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBack()
	web := d.webServer()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []error
	)
	part := func(name string, run func() error) {
		wg.Go(func() {
			defer stopFront() // none goes on without the others
			if err := run(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("the fleet", func() error { return d.fleet.Run(back) })
	part("the server", func() error { return d.server.Run(back) })
	for _, follower := range d.followers {
		part("the kubeconfigs", func() error { return follower.Run(front, filesEvery) })
	}
	part("the token and the certificate", func() error { return d.files.follow(front) })
	part("the signals", func() error { return d.reloadOnHangup(front) })
	part("HTTP", func() error {
		if err := listen(web, listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	<-front.Done()
	drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := web.Shutdown(drain); err != nil {
		d.log.Warn("not every request was finished before the end", "waited", drainTimeout)
		web.Close() // it was asked to end in peace and did not
	}
	stopBack()
	wg.Wait()
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(failed...)
}

func (d *service) webServer() *http.Server {
	web := &http.Server{Handler: d.server, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(d.log.Handler(),
			slog.LevelWarn), Protocols: new(http.Protocols)}
	web.Protocols.SetHTTP1(true)
	web.Protocols.SetHTTP2(true)
	if d.files.certFile != "" {
		web.TLSConfig = &tls.Config{GetCertificate: d.files.certificate}
	}
	web.RegisterOnShutdown(d.server.Stop) // which is called when nothing more is accepted
	return web
}

func listen(web *http.Server, listener net.Listener) error {
	if web.TLSConfig != nil {
		return web.ServeTLS(listener, "", "")
	}
	return web.Serve(listener)
}

// reloadOnHangup has every file read again when the process gets SIGHUP.
func (d *service) reloadOnHangup(ctx context.Context) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			d.log.Info("SIGHUP: reading the kubeconfigs, the token and the certificate again")
			for _, follower := range d.followers {
				follower.Look()
			}
			d.files.lookSoon()
		case <-ctx.Done():
			return nil
		}
	}
}
