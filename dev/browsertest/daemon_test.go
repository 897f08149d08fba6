package browsertest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/daemon/web"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// daemon is a real daemon: a fleet, its server, and the page.
type daemon struct {
	fleet *fleet.Fleet
	url   string
}

// startDaemon serves an empty fleet until the end of the test. It mirrors the resources in include, or all.
func startDaemon(t *testing.T, access server.Access, include ...string) *daemon {
	t.Helper()
	t.Parallel()
	return startDaemonWithDisk(t, access, nil, include...)
}

// startDaemonWithDisk is startDaemon with a data folder; the caller closes the disk.
func startDaemonWithDisk(t *testing.T, access server.Access, data *disk.Disk, include ...string) *daemon {
	t.Helper()
	d, stop, err := newDaemon(access, data, include)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// newDaemon serves a fleet until stop is called.
func newDaemon(access server.Access, data *disk.Disk, include []string) (d *daemon, stop func() error, err error) {
	fl, err := fleet.New(fleet.Options{Include: include, Disk: data,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.New(fl, server.Options{Access: access, Page: web.Handler()})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- fl.Run(ctx) }()
	go func() { ended <- srv.Run(ctx) }()
	listener := httptest.NewServer(srv)
	return &daemon{fleet: fl, url: listener.URL}, func() error {
		cancel()
		err := errors.Join(<-ended, <-ended)
		listener.Close()
		return err
	}, nil
}

// shared is the fleet of the tests that change only objects in their own namespaces.
var shared struct {
	once   sync.Once
	daemon *daemon
	stop   func() error
	err    error
}

// startFleet serves one real cluster as two, eu and us, which have the same objects.
func startFleet(t *testing.T) (*daemon, *testcluster.Cluster) {
	t.Helper()
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	shared.once.Do(func() {
		if shared.daemon, shared.stop, shared.err = newDaemon(server.Access{}, nil, nil); shared.err != nil {
			return
		}
		for _, name := range []string{"eu", "us"} {
			shared.err = errors.Join(shared.err,
				shared.daemon.fleet.Join(name, cluster.Config(), fleet.Origin{Kind: "kubeconfig"}))
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.daemon, cluster
}

// openDaemon opens the page of a daemon.
func openDaemon(t *testing.T, d *daemon, hash string, setUp ...action) *tab {
	t.Helper()
	p := newTab(t)
	p.visit(d.url+"/"+hash, setUp...)
	return p
}

// apply applies YAML to the cluster.
func apply(t *testing.T, cluster *testcluster.Cluster, yaml string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t, "apply", "-f", file)
}

// podYAML returns a pod that is neither scheduled nor run.
func podYAML(namespace, name, app string) string {
	return `---
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, namespace: ` + namespace + `, labels: {app: ` + app + `},
  annotations: {note: "quotes \" and <b>angles</b>, ünicode\nand a second line\n"}}
spec: {containers: [{name: main, image: "example.com/` + app + `:1"}]}
`
}

// place creates a namespace in which pods can be created without controllers.
func place(t *testing.T, cluster *testcluster.Cluster) string {
	t.Helper()
	ns := cluster.Namespace(t)
	apply(t, cluster, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: `+ns+`}}`)
	return ns
}
