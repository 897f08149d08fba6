package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(fixtureRun{m}) }

// fixtureRun runs the tests and then ends the mirror that they share, before goroutines are looked for.
type fixtureRun struct{ m *testing.M }

// Run runs the tests.
func (r fixtureRun) Run() int {
	code := r.m.Run()
	if fixture.stop == nil {
		return code
	}
	if err := fixture.stop(); err != nil {
		slog.Error("end the mirror that all tests share", "error", err)
		return 1
	}
	return code
}

// mirrored is the name of the one cluster of the fixture.
const mirrored = "eu"

// fixture is what tests on a real cluster share: the cluster, some objects of each kind, and one mirror of it. They
// take seconds to make, so each is made once.
var fixture struct {
	fill, start sync.Once
	filled      bool
	pair        *pair
	stop        func() error
}

// filled is the cluster of all tests here, with some objects of each kind. Nothing in it changes
// but what a test changes.
func filled(t *testing.T) *testcluster.Cluster {
	t.Helper()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	fixture.fill.Do(func() {
		cluster.Kubectl(t, "apply", "-f", "testdata/definitions.yaml", "-f", "testdata/selectabledefinition.yaml")
		cluster.Kubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
		cluster.Kubectl(t, "apply", "-f", "testdata/objects.yaml")
		fixture.filled = true
	})
	if !fixture.filled {
		t.Fatal("the cluster could not be filled; see the first test that failed")
	}
	return cluster
}

// mirror is a fleet of the filled cluster that is served: one for all tests. A test that has another cluster join
// makes it leave again.
func mirror(t *testing.T) *pair {
	t.Helper()
	cluster := filled(t)
	fixture.start.Do(func() {
		pair, stop, err := startMirror(cluster)
		if err != nil {
			t.Fatal(err)
		}
		fixture.pair, fixture.stop = pair, stop
	})
	if fixture.pair == nil {
		t.Fatal("the mirror could not be started; see the first test that failed")
	}
	return fixture.pair
}

// startMirror starts a fleet of one cluster and serves it.
func startMirror(cluster *testcluster.Cluster) (*pair, func() error, error) {
	fl, err := fleet.New(fleet.Options{Include: []string{"*"}, Secrets: true, SecretData: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, nil, err
	}
	if err := fl.Join(mirrored, cluster.Config(), fleet.Origin{Kind: "test"}); err != nil {
		return nil, nil, err
	}
	srv, err := server.New(fl, server.Options{})
	if err != nil {
		return nil, nil, err
	}
	conns := connrotation.NewDialer((&net.Dialer{}).DialContext)
	cfg := cluster.Config()
	cfg.Dial = conns.DialContext
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	ended := make([]error, 2)
	for i, run := range []func(context.Context) error{fl.Run, srv.Run} {
		wg.Go(func() { ended[i] = run(ctx) })
	}
	web := httptest.NewServer(srv)
	stop := func() error {
		cancel()
		wg.Wait()
		web.Close()
		client.CloseIdleConnections()
		conns.CloseAll()
		return errors.Join(ended...)
	}
	return &pair{real: cluster.Config().Host, ours: web.URL + "/clusters/" + mirrored, all: web.URL + "/fleet",
		client: client, fleet: fl}, stop, nil
}
