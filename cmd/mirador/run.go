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

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/audit"
	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/identity"
	"github.com/mirador-k8s/mirador/daemon/members"
	"github.com/mirador-k8s/mirador/daemon/server"
)

const (
	// filesEvery is how often kubeconfigs are checked.
	filesEvery = 2 * time.Second
	// drainTimeout bounds how long requests in progress may take during the shutdown.
	drainTimeout = 10 * time.Second
)

// service has the parts of a running daemon.
type service struct {
	fleet     *fleet.Fleet
	data      *disk.Disk // nil if there is none
	server    *server.Server
	users     *identity.Authenticator // nil if --token-file is the only credential, or none is needed
	rights    *access.Access
	audit     *audit.Log // nil if there is none
	followers []*fleet.Follower
	files     *credentials
	log       *slog.Logger
	// found finds members in the home cluster; nil if none are.
	found *members.Members
	// startGrace is how long the start waits for found to know the members.
	startGrace time.Duration
	// probes is the listener of --probe-listen, nil if there is none.
	probes net.Listener
	// shutdownDelay is how long requests are answered after ctx has ended, while /readyz fails.
	shutdownDelay time.Duration
}

// run serves until ctx ends or a part fails. It shuts down in an order in which no answer is cut off: first /readyz
// fails for the shutdown delay, then it stops accepting connections, watches end, requests in progress finish, the
// clusters stop, and at last the audit log is written to its end. On SIGHUP it reads all files again.
func (d *service) run(ctx context.Context, listener net.Listener) error {
	// front is the context of the listener and the followers of files, back that of the parts that they need.
	front, stopFront := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFront()
	back, stopBack := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBack()
	web, probes := d.webServer(), d.probeServer()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []error
	)
	part := func(name string, run func() error) {
		wg.Go(func() {
			defer stopFront() // all parts end together
			if err := run(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	auditContext, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	var auditing sync.WaitGroup // ends after everything that records events
	if d.audit != nil {
		auditing.Go(func() {
			if err := d.audit.Run(auditContext); err != nil {
				d.log.Error("the audit log is incomplete", "error", err)
			}
		})
	}
	if d.data != nil {
		part("the data folder", func() error { d.data.Run(back); return nil })
		restored, cancel := context.WithCancel(back)
		defer cancel()
		wg.Go(func() { d.fleet.WaitRestored(restored); cancel() })
		wg.Go(func() { collectLess(restored.Done()) })
	}
	part("the fleet", func() error { return d.fleet.Run(back) })
	wg.Go(func() { afterStart(back, d.fleet.Clusters, d.fleet.UnusedIncludes, d.log) })
	if d.rights != nil {
		part("the rights", func() error { return d.rights.Run(back) })
	}
	if d.users != nil {
		part("the users", func() error { return d.users.Run(back) })
	}
	part("the server", func() error {
		d.untilMembersAreKnown(back)
		return d.server.Run(back)
	})
	if d.found != nil {
		part("the members of the home cluster", func() error { return d.found.Run(front) })
	}
	for _, follower := range d.followers {
		part("the kubeconfigs", func() error { return follower.Run(front, filesEvery) })
	}
	part("the files of token, certificate and access", func() error { return d.files.follow(front) })
	part("the signals", func() error { return d.reloadOnHangup(front) })
	part("HTTP", func() error {
		if err := listen(web, listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	if d.probes != nil {
		part("the probes", func() error {
			if err := probes.Serve(d.probes); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	d.untilEnd(ctx, front)
	stopFront()
	drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := web.Shutdown(drain); err != nil {
		d.log.Warn("not every request was finished before the end", "waited", drainTimeout)
		web.Close() // the graceful shutdown took too long
	}
	probes.Close() // fails only for a listener that is closed
	stopBack()
	wg.Wait()
	stopAudit()
	auditing.Wait()
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(failed...)
}

// untilMembersAreKnown waits until the members that the home cluster names have joined, so that the start waits for
// them: a client must not take the objects of a cluster that has not joined yet for deleted ones.
func (d *service) untilMembersAreKnown(ctx context.Context) {
	if d.found == nil {
		return
	}
	late := time.NewTimer(d.startGrace)
	defer late.Stop()
	select {
	case <-d.found.Known():
	case <-ctx.Done():
	case <-late.C:
		d.log.Warn("the members that the home cluster names are not known yet; the start does not wait for them any more",
			"waited", d.startGrace)
	}
}

// untilEnd waits until ctx ends, and then for the shutdown delay. It returns at once when front ends, because a part
// has failed.
func (d *service) untilEnd(ctx, front context.Context) {
	select {
	case <-ctx.Done():
	case <-front.Done():
		return
	}
	if d.shutdownDelay == 0 {
		return
	}
	d.server.Drain()
	d.log.Info("stopping: /readyz fails, and requests are answered for the time of --shutdown-delay",
		"delay", d.shutdownDelay)
	delay := time.NewTimer(d.shutdownDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-front.Done():
	}
}

// newWebServer returns a server with bounds on time and size.
func newWebServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
}

// probeServer returns the server of --probe-listen. Anybody may connect, so it holds no connection.
func (d *service) probeServer() *http.Server {
	probes := newWebServer(d.server.Probes(), d.log)
	probes.ReadTimeout, probes.WriteTimeout = probes.ReadHeaderTimeout, probes.ReadHeaderTimeout
	probes.SetKeepAlivesEnabled(false)
	return probes
}

func (d *service) webServer() *http.Server {
	web := newWebServer(d.server, d.log)
	web.Protocols = new(http.Protocols)
	web.Protocols.SetHTTP1(true)
	web.Protocols.SetHTTP2(true)
	if d.files.certFile != "" {
		web.TLSConfig = &tls.Config{GetCertificate: d.files.certificate}
		if d.users != nil {
			web.TLSConfig = d.users.TLS(web.TLSConfig)
		}
	}
	web.RegisterOnShutdown(d.server.Stop) // called when the listener is closed
	return web
}

func listen(web *http.Server, listener net.Listener) error {
	if web.TLSConfig != nil {
		return web.ServeTLS(listener, "", "")
	}
	return web.Serve(listener)
}

// reloadOnHangup reads every file again on SIGHUP.
func (d *service) reloadOnHangup(ctx context.Context) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			d.log.Info("SIGHUP: reading the files of kubeconfigs, tokens, certificates, authentication and access again")
			for _, follower := range d.followers {
				follower.Check()
			}
			if d.users != nil {
				d.users.Reload()
			}
			d.files.reload()
		case <-ctx.Done():
			return nil
		}
	}
}
