package server_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// restartWorld is two clusters, a daemon with a data folder that is restarted, and clients that watch pods of the fleet.
// Time is fake.
type restartWorld struct {
	*testing.T
	rnd      *rand.Rand
	clusters map[string]*informertest.Server
	configs  map[string]*rest.Config
	dir      string
	daemon   *runningDaemon // nil while it is down
	clients  []*fleetClient
}

type runningDaemon struct {
	srv  *server.Server
	stop func()
}

func newRestartWorld(t *testing.T, seed uint64) *restartWorld {
	w := &restartWorld{T: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: filepath.Join(t.TempDir(), "0"),
		clusters: map[string]*informertest.Server{}, configs: map[string]*rest.Config{}}
	for _, name := range []string{"eu", "us"} {
		c := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(c)
		t.Cleanup(stop)
		create(t, c, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": "kube-system"}}})
		for i := range 5 {
			create(t, c, pod("web", fmt.Sprint("p", i), nil))
		}
		w.clusters[name], w.configs[name] = c, cfg
	}
	return w
}

// start starts the daemon, and waits until it answers for all clusters.
func (w *restartWorld) start() {
	w.Helper()
	log := slog.New(slog.DiscardHandler)
	d, err := disk.Open(w.dir, disk.Options{Logger: log})
	if err != nil {
		w.Fatal(err)
	}
	fl, err := fleet.New(fleet.Options{Include: []string{"pods", "namespaces"}, WithoutOpenAPI: true, Disk: d, Logger: log})
	if err != nil {
		w.Fatal(err)
	}
	for name, cfg := range w.configs {
		if err := fl.Join(name, cfg, fleet.Origin{Kind: "kubeconfig"}); err != nil {
			w.Fatal(err)
		}
	}
	srv, err := server.New(fl, server.Options{})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- fl.Run(ctx) }()
	go func() { ended <- srv.Run(ctx) }()
	w.daemon = &runningDaemon{srv, func() {
		srv.Stop()
		for _, c := range w.clients {
			c.disconnect()
		}
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				w.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			w.Error(err)
		}
	}}
}

// stop stops the daemon. If kill is true, the next one gets the folder as it was when this one was in the middle of its
// work.
func (w *restartWorld) stop(kill bool) {
	w.Helper()
	next := w.dir
	if kill {
		synctest.Wait()
		next = filepath.Join(filepath.Dir(w.dir), strconv.Itoa(w.rnd.Int()))
		if err := os.CopyFS(next, os.DirFS(w.dir)); err != nil {
			w.Fatal(err)
		}
	}
	w.daemon.stop()
	w.daemon, w.dir = nil, next
}

// change makes some random changes.
func (w *restartWorld) change(n int) {
	for range n {
		c := w.clusters[[]string{"eu", "us"}[w.rnd.IntN(2)]]
		p := pod("web", fmt.Sprint("p", w.rnd.IntN(8)), nil)
		p.SetAnnotations(map[string]string{"n": fmt.Sprint(w.rnd.Uint64())})
		p.SetLabels(map[string]string{"color": []string{"red", "blue"}[w.rnd.IntN(2)]})
		if w.rnd.IntN(3) == 0 {
			_, _ = c.Delete(p) // it may not exist
		} else if _, err := c.Create(p); err != nil {
			if _, err := c.Update(p); err != nil {
				w.Fatal(err)
			}
		}
		if w.rnd.IntN(3) == 0 {
			w.pause(60)
		}
	}
}

// pause lets up to some milliseconds pass.
func (w *restartWorld) pause(most int) {
	time.Sleep(time.Duration(w.rnd.IntN(most)) * time.Millisecond)
}

// fleetClient watches the pods of the fleet, and checks that each change makes sense after those that it has seen.
type fleetClient struct {
	w        *restartWorld
	selector string
	version  string // of the fleet; "" if it has to list
	lists    int
	objects  map[string]clientObject // by cluster and UID
	end      func()                  // nil if there is no watch
}

type clientObject struct {
	key     string
	version object.Version // in the cluster
}

func (w *restartWorld) client(selector string) *fleetClient {
	c := &fleetClient{w: w, selector: selector, objects: map[string]clientObject{}}
	w.clients = append(w.clients, c)
	return c
}

func (c *fleetClient) path(more string) string {
	return "/fleet/api/v1/pods?labelSelector=" + c.selector + more
}

// connect lists if necessary, and watches.
func (c *fleetClient) connect() {
	c.w.Helper()
	for tries := 0; c.version == ""; tries++ {
		rec := httptest.NewRecorder()
		c.w.daemon.srv.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "http://localhost"+c.path(""), nil))
		if rec.Code == http.StatusServiceUnavailable && tries < 100 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		var l unstructured.UnstructuredList
		if err := json.Unmarshal(rec.Body.Bytes(), &l); err != nil || rec.Code != http.StatusOK {
			c.w.Fatalf("%d %s", rec.Code, rec.Body)
		}
		c.lists++
		clear(c.objects)
		for i := range l.Items {
			id, o := describe(&l.Items[i])
			c.objects[id] = o
		}
		c.version = l.GetResourceVersion()
	}
	ctx, cancel := context.WithCancel(context.Background())
	pr, pw := io.Pipe()
	ended, srv := make(chan struct{}, 2), c.w.daemon.srv
	go func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet,
			"http://localhost"+c.path("&allowWatchBookmarks=true&watch=true&resourceVersion="+c.version), nil)
		for { // until the clusters are there
			w := &pipedResponse{header: http.Header{}, Writer: pw}
			if srv.ServeHTTP(w, r); w.code != http.StatusServiceUnavailable || ctx.Err() != nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		pw.Close()
		ended <- struct{}{}
	}()
	go func() {
		for lines := bufio.NewScanner(pr); lines.Scan() && c.receive(lines.Bytes()); {
		}
		pr.Close()
		ended <- struct{}{}
	}()
	c.end = func() {
		cancel()
		<-ended
		<-ended
	}
}

// disconnect ends the watch.
func (c *fleetClient) disconnect() {
	if c.end != nil {
		c.end()
		c.end = nil
	}
}

func describe(o *unstructured.Unstructured) (id string, of clientObject) {
	a := o.GetAnnotations()
	return a["mirador.dev/cluster"] + " " + string(o.GetUID()), clientObject{key: a["mirador.dev/cluster"] + "/" + o.GetName(),
		version: object.Version(a["mirador.dev/resource-version"])}
}

// receive takes an event, and reports whether the watch goes on.
func (c *fleetClient) receive(line []byte) bool {
	var e struct {
		Type   string
		Object unstructured.Unstructured
	}
	err := json.Unmarshal(line, &e) // a refusal is no event
	switch code, _, _ := unstructured.NestedInt64(e.Object.Object, "code"); {
	case e.Type == "ERROR" && code == http.StatusGone:
		c.w.Logf("410: %s", line)
		c.version = ""
		return false
	case err != nil || e.Type == "ERROR" || e.Type == "":
		c.w.Errorf("%v: %s", err, line)
		return false
	}
	was := c.version
	c.version = e.Object.GetResourceVersion()
	if len(c.version) < len(was) || len(c.version) == len(was) && c.version < was {
		c.w.Errorf("version %s after %s", c.version, was)
	}
	if e.Type == "BOOKMARK" {
		return true
	}
	id, o := describe(&e.Object)
	have, known := c.objects[id]
	switch {
	case e.Type == "ADDED" && !known && c.lists == 1:
		for other, have := range c.objects {
			if have.key == o.key {
				c.w.Errorf("%s was added as %s, and is there as %s", o.key, id, other)
			}
		}
		c.objects[id] = o
	case e.Type == "ADDED" && !known:
		c.objects[id] = o
	case e.Type == "MODIFIED" && known && have.version.Before(o.version):
		c.objects[id] = o
	case e.Type == "DELETED" && known:
		delete(c.objects, id)
	case c.lists > 1 && (!known || !have.version.Before(o.version)): // the list had it already
	default:
		c.w.Errorf("%s of %s at %s, which has %v", e.Type, o.key, o.version, have)
	}
	return true
}

// sees returns an error unless the client has what the clusters have.
func (c *fleetClient) sees() error {
	want := map[string]clientObject{}
	for name, cluster := range c.w.clusters {
		pods, err := cluster.List(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
		if err != nil {
			return err
		}
		for _, p := range pods {
			if c.selector == "" || "color%3D"+p.GetLabels()["color"] == c.selector {
				want[name+" "+string(p.GetUID())] = clientObject{name + "/" + p.GetName(),
					object.Version(p.GetResourceVersion())}
			}
		}
	}
	if !maps.Equal(c.objects, want) {
		return fmt.Errorf("the client %q has %v, and the clusters have %v", c.selector, c.objects, want)
	}
	return nil
}

// pipedResponse is a response writer whose body can be read while it is written.
type pipedResponse struct {
	io.Writer
	header http.Header
	code   int
}

func (p *pipedResponse) Header() http.Header  { return p.header }
func (p *pipedResponse) WriteHeader(code int) { p.code = code }
func (p *pipedResponse) Flush()               {}

// Write drops the text of a refusal that is temporary.
func (p *pipedResponse) Write(b []byte) (int, error) {
	if p.code == http.StatusServiceUnavailable {
		return len(b), nil
	}
	return p.Writer.Write(b)
}

// run restarts the daemon some times, with changes before, in between and after.
func (w *restartWorld) run(restarts int, whileDown func()) {
	w.start()
	for range 3 {
		w.client("")
	}
	w.client("color%3Dred")
	for _, c := range w.clients {
		c.connect()
	}
	time.Sleep(time.Second) // until the disk follows
	for range restarts {
		w.change(w.rnd.IntN(30))
		w.pause(400)
		if w.rnd.IntN(2) == 0 {
			w.clients[w.rnd.IntN(3)].disconnect() // it misses the next changes
			w.change(w.rnd.IntN(10))
		}
		w.pause(400)
		w.stop(w.rnd.IntN(3) > 0)
		w.change(w.rnd.IntN(10))
		whileDown()
		w.start()
		if w.rnd.IntN(2) == 0 {
			w.change(w.rnd.IntN(5))
			w.pause(1000)
		}
		for _, c := range w.clients {
			c.connect()
			w.pause(50)
		}
		w.change(w.rnd.IntN(10))
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
	for _, c := range w.clients {
		c.disconnect()
		c.connect()
	}
	time.Sleep(20 * time.Second)
	synctest.Wait()
	w.daemon.stop()
	for _, c := range w.clients {
		if err := c.sees(); err != nil {
			w.Error(err)
		}
	}
}

func restartSeeds(few uint64) uint64 {
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("MIRADOR_RESTART_SEEDS"), fmt.Sprint(few)), 10, 64)
	if err != nil {
		panic(errors.Join(errors.New("MIRADOR_RESTART_SEEDS"), err))
	}
	return n
}

// Clients of the fleet do not notice that the daemon was restarted, gracefully or by a kill in the middle of its work:
// no watch is 410, and each receives every change once.
func TestWatchesOfTheFleetGoOnAfterARestart(t *testing.T) {
	for seed := range restartSeeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRestartWorld(t, seed)
				w.run(3, func() {})
				for i, c := range w.clients {
					if c.lists != 1 {
						t.Errorf("client %d has listed %d times", i, c.lists)
					}
				}
			})
		})
	}
}

// More changes than are kept for clients do not make the order on disk useless.
func TestWatchesOfTheFleetAreTrueAfterMoreChangesThanAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRestartWorld(t, 1)
		w.start()
		c := w.client("")
		c.connect()
		w.change(5000)
		time.Sleep(time.Second)
		w.stop(true)
		w.change(10)
		w.start()
		c.connect()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w.daemon.stop()
		if err := c.sees(); err != nil || c.lists != 1 {
			t.Errorf("%v; the client has listed %d times", err, c.lists)
		}
	})
}

// If a cluster has lost the changes that happened while the daemon was down, or has other ones instead, clients may
// have to list, and see the truth in the end.
func TestWatchesOfTheFleetAreTrueAfterARestartAndCompactions(t *testing.T) {
	for seed := range restartSeeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRestartWorld(t, seed)
				w.run(3, func() {
					for _, c := range w.clusters {
						if w.rnd.IntN(4) == 0 { // its etcd is restored from a backup
							before := c.Version()
							w.change(w.rnd.IntN(10))
							if err := c.Restore(before); err != nil {
								w.Fatal(err)
							}
						} else if w.rnd.IntN(2) == 0 {
							if err := c.Compact(c.Version()); err != nil {
								w.Fatal(err)
							}
							w.change(w.rnd.IntN(4))
						}
					}
				})
			})
		})
	}
}

// If the end of the notes is lost with the machine, the versions of that time are 410, and no client sees anything else
// than the truth.
func TestWatchesOfTheFleetAreTrueWithoutTheLastRecords(t *testing.T) {
	for seed := range restartSeeds(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRestartWorld(t, seed)
				cut := 0
				w.run(3, func() {
					files, err := filepath.Glob(filepath.Join(w.dir, "records", "order-*"))
					if err != nil {
						t.Fatal(err)
					}
					for _, file := range files {
						b, err := os.ReadFile(file)
						if err == nil {
							err = os.WriteFile(file, b[:len(b)-w.rnd.IntN(min(len(b), 400))], 0o600)
						}
						if err != nil {
							t.Fatal(err)
						}
						cut++
					}
				})
				if cut == 0 {
					t.Error("there are no notes")
				}
			})
		})
	}
}
