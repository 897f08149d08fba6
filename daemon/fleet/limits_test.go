package fleet_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

var nodesGVR = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}

func node(name, label string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"label": label}}}
}

// flood is a body that never ends: a prefix, then one object after another.
type flood struct {
	before string
	object func(n int) string
	n      int
	left   string
	peak   *atomic.Uint64 // of the heap
	read   int
}

// Read returns the next bytes, and measures the heap from time to time.
func (f *flood) Read(b []byte) (int, error) {
	if f.left == "" {
		if f.left = f.before; f.n > 0 {
			f.left = f.object(f.n)
		}
		f.n++
	}
	n := copy(b, f.left)
	f.left = f.left[n:]
	if f.read += n; f.read > 512<<10 && f.peak != nil {
		f.read = 0
		runtime.GC()
		f.peak.Store(max(f.peak.Load(), heap()))
	}
	return n, nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// noise returns an incompressible text.
func noise(bytes int) string {
	b := make([]byte, bytes/2)
	rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

func bigPod(n, size int) string {
	return fmt.Sprintf(`{"metadata":{"name":"p%d","namespace":"a","uid":"u%d","resourceVersion":"%d",`+
		`"annotations":{"x":"%s"}}}`, n, n, 1000+n, noise(size))
}

func added(n, size int) string {
	return `{"type":"ADDED","object":` + strings.Replace(bigPod(n, size), "{",
		`{"kind":"Pod","apiVersion":"v1",`, 1) + "}\n"
}

const listHead = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1000"%s},` +
	`"items":[{"metadata":{"name":"first","namespace":"a","resourceVersion":"1"}}`

func asks(r *http.Request, what string) bool {
	return r.URL.Path == "/api/v1/pods" && strings.Contains(r.URL.RawQuery, what)
}

// byState is in the query of a watch with an initial state.
const byState = "sendInitialEvents=true"

func TestEndlessListOrWatchDropsOnlyItsResource(t *testing.T) {
	var page atomic.Int64
	for name, hostile := range map[string]func(r *http.Request, body func(*flood) *http.Response) *http.Response{
		"a state without end": func(r *http.Request, body func(*flood) *http.Response) *http.Response {
			if asks(r, byState) {
				return body(&flood{object: func(n int) string { return added(n, 4000) }})
			}
			return nil
		},
		"a page without end": func(r *http.Request, body func(*flood) *http.Response) *http.Response {
			if asks(r, byState) {
				return reply(http.StatusBadRequest, "text/plain", strings.NewReader("no"))
			}
			return body(&flood{before: fmt.Sprintf(listHead, ""), object: func(n int) string { return "," + bigPod(n, 4000) }})
		},
		"pages without end": func(r *http.Request, _ func(*flood) *http.Response) *http.Response {
			if asks(r, byState) {
				return reply(http.StatusBadRequest, "text/plain", strings.NewReader("no"))
			}
			n := int(page.Add(1))
			return replyJSON(fmt.Sprintf(listHead, fmt.Sprintf(`,"continue":"%d"`, n)) + "," + bigPod(n, 100_000) + "]}")
		},
		"many small objects": func(r *http.Request, body func(*flood) *http.Response) *http.Response {
			if asks(r, byState) {
				return body(&flood{object: func(n int) string { return added(n, 2) }})
			}
			return nil
		},
		"a watch of new objects": func(r *http.Request, body func(*flood) *http.Response) *http.Response {
			switch {
			case asks(r, byState):
				return reply(http.StatusBadRequest, "text/plain", strings.NewReader("no"))
			case asks(r, "watch=true"):
				return body(&flood{object: func(n int) string { return added(n, 4000) }})
			}
			return replyJSON(fmt.Sprintf(listHead, "") + "]}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Packing noise is slow under the race detector, so the limit is small. The heap also has other memory
			// than the objects, such as the buffers of streams.
			const most, some = 1 << 20, 8 << 20
			limits := fleet.Limits{Objects: 1_250, Bytes: most}
			inWorld(t, fleet.Options{Include: []string{"pods", "nodes"}, Limits: limits}, func(w *world) {
				var peak atomic.Uint64
				var tries atomic.Int64
				var tame atomic.Bool
				_, cfg := w.server()
				_, good := w.joined("good")
				w.untilState(good, fleet.Ready)
				runtime.GC()
				before := heap()
				c := w.join("hostile", wrapped(cfg, func(r *http.Request) *http.Response {
					if r.URL.Path != "/api/v1/pods" || tame.Load() {
						return nil
					}
					return hostile(r, func(f *flood) *http.Response {
						tries.Add(1)
						f.peak = &peak
						return reply(200, "application/json", f)
					})
				}))
				w.until("pods are dropped", func() bool {
					r, ok := c.Resource(podsGVR)
					if !ok {
						return false
					}
					err := r.Health().Reflector.Err
					return err != nil && strings.Contains(err.Error(), "a limit was exceeded")
				})
				h := w.untilState(c, fleet.Degraded)
				if !strings.Contains(h.Err, "--max-") || !strings.Contains(h.Err, "1 of 2 resources fail") {
					t.Errorf("Err = %q", h.Err)
				}
				r, _ := c.Resource(podsGVR)
				if rh := r.Health(); rh.Objects != 0 || rh.Layout.Bytes > 64<<10 || r.Synced() ||
					rh.Reflector.State.String() != "retrying" {
					t.Errorf("the mirror still has %d objects, %d bytes, synced %t, %s", rh.Objects, rh.Layout.Bytes,
						r.Synced(), rh.Reflector.State)
				}
				if nodes := w.resource(c, nodesGVR); !nodes.Synced() {
					t.Error("another resource of the cluster is not synced")
				}
				if got := int64(peak.Load()) - int64(before); got > 6*most+some {
					t.Errorf("it took %d MiB, with a limit of %d", got>>20, most>>20)
				}
				if state := good.Health().State; state != fleet.Ready {
					t.Errorf("the other cluster is %s", state)
				}
				tries.Store(0)
				<-time.After(time.Hour)
				if n := tries.Load(); name != "pages without end" && (n < 2 || n > 8) {
					t.Errorf("it was tried %d times in an hour", n)
				}
				for range 3 {
					runtime.GC()
				}
				if got := int64(heap()) - int64(before); got > 3*most+some {
					t.Errorf("after an hour of tries %d MiB are held", got>>20)
				}
				tame.Store(true)
				<-time.After(70 * time.Minute)
				w.untilState(c, fleet.Ready)
			})
		})
	}
}

func TestEndlessObjectIsRefused(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "nodes"}}, func(w *world) {
		_, cfg := w.server()
		c := w.join("hostile", wrapped(cfg, func(r *http.Request) *http.Response {
			if r.URL.Path != "/api/v1/pods" {
				return nil
			}
			return reply(200, "application/json",
				io.MultiReader(strings.NewReader(`{"kind":"PodList","items":[{"a":"`), endless("x")))
		}))
		h := w.untilState(c, fleet.Degraded)
		if !strings.Contains(h.Err, "one object takes more than") {
			t.Errorf("Err = %q", h.Err)
		}
	})
}

func TestClusterOverItsLimitDropsItsLargestResource(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "nodes"}, Limits: fleet.Limits{Objects: 100, ClusterObjects: 150}},
		func(w *world) {
			s, c := w.joined("eu")
			for i := range 90 {
				create(t, s, pod("a", fmt.Sprintf("p%d", i)))
			}
			pods := w.resource(c, podsGVR)
			w.untilState(c, fleet.Ready)
			for i := range 70 {
				create(t, s, node(fmt.Sprintf("n%d", i), ""))
			}
			for i := range 2000 { // the mirror is checked after a number of changes
				if _, err := s.Update(node("n0", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			w.untilDropped(pods)
			h := w.untilState(c, fleet.Degraded)
			if !strings.Contains(h.Err, "--max-cluster-objects") {
				t.Errorf("Err = %q", h.Err)
			}
			if r := w.resource(c, nodesGVR); r.Snapshot().Len() != 70 {
				t.Errorf("%d nodes are left", r.Snapshot().Len())
			}
		})
}

// A mirror that is behind its watch has few objects at the check after the last changes, and there may be no change
// later.
func TestLimitIsCheckedInAQuietCluster(t *testing.T) {
	for name, then := range map[string]func(*informertest.Server){
		"by a bookmark":            func(s *informertest.Server) { s.Bookmark(podsGVR); s.Bookmark(nodesGVR) },
		"when the watch has ended": func(*informertest.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet.Options{Include: []string{"pods", "nodes"},
				Limits: fleet.Limits{Objects: 100, ClusterObjects: 150}}, func(w *world) {
				s, c := w.joined("eu")
				pods := w.resource(c, podsGVR)
				w.untilState(c, fleet.Ready)
				for i := range 90 {
					create(t, s, pod("a", fmt.Sprintf("p%d", i)))
				}
				for i := range 70 {
					create(t, s, node(fmt.Sprintf("n%d", i), ""))
				}
				synctest.Wait()
				began := time.Now()
				then(s)
				w.untilDropped(pods)
				if took := time.Since(began); name == "by a bookmark" && took > time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// fill creates pods in a cluster that is mirrored, and waits until the mirror was checked.
func (w *world) fill(s *informertest.Server, name string, pods int) {
	w.Helper()
	for i := range pods {
		create(w, s, pod("a", fmt.Sprintf("%s%d", name, i)))
	}
	<-time.After(2 * time.Minute) // the mirror is checked at bookmarks
}

// The cluster that takes most pays, and not the one that grows.
func TestFleetOverItsLimitDropsTheLargestResourceOfTheLargestCluster(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "nodes"}, Limits: fleet.Limits{FleetBytes: 60_000}},
		func(w *world) {
			large, most := w.joined("most")
			small, less := w.joined("less")
			w.untilState(most, fleet.Ready)
			w.untilState(less, fleet.Ready)
			pods := w.resource(most, podsGVR)
			w.fill(large, "p", 70)
			create(t, large, node("n", ""))
			w.fill(small, "p", 5)
			if taken, limit := w.f.Memory(); taken > limit || taken < 75*400 {
				w.Fatalf("the fleet takes %d of %d bytes", taken, limit)
			}
			w.fill(small, "q", 55)
			w.untilDropped(pods)
			h := w.untilState(most, fleet.Degraded)
			if !strings.Contains(h.Err, "--max-fleet-bytes") {
				t.Errorf("Err = %q", h.Err)
			}
			<-time.After(time.Hour)
			if h := less.Health(); h.State != fleet.Ready || h.Objects != 60 {
				t.Errorf("the smaller cluster is %s and has %d objects", h.State, h.Objects)
			}
			if h := most.Health(); h.State != fleet.Degraded || h.Objects != 1 {
				t.Errorf("the larger cluster is %s and has %d objects: there is no room for its pods", h.State, h.Objects)
			}
			if err := w.f.Leave(w.Context(), "less"); err != nil {
				w.Fatal(err)
			}
			<-time.After(time.Hour)
			if h := most.Health(); h.State != fleet.Ready || h.Objects != 71 {
				t.Errorf("with room again, the larger cluster is %s and has %d objects", h.State, h.Objects)
			}
			if err := w.f.Leave(w.Context(), "most"); err != nil {
				w.Fatal(err)
			}
			if taken, _ := w.f.Memory(); taken != 0 {
				t.Errorf("without clusters, the fleet takes %d bytes", taken)
			}
		})
}

func TestNoResourceIsReadForTheFirstTimeWhenTheFleetIsFull(t *testing.T) {
	inWorld(t, fleet.Options{Include: []string{"pods", "nodes"}, Limits: fleet.Limits{FleetBytes: 60_000}},
		func(w *world) {
			s, first := w.joined("first")
			w.untilState(first, fleet.Ready)
			w.fill(s, "p", 70)
			last, cfg := w.server()
			for i := range 40 {
				create(t, last, pod("a", fmt.Sprintf("p%d", i)))
			}
			c := w.join("last", cfg)
			h := w.untilState(c, fleet.Degraded)
			if !strings.Contains(h.Err, "--max-fleet-bytes") || h.Synced != 1 || h.Objects != 0 {
				t.Errorf("the cluster for which there is no room: %+v", h)
			}
			<-time.After(time.Hour)
			if h := first.Health(); h.State != fleet.Ready || h.Objects != 70 {
				t.Errorf("the other cluster is %s and has %d objects", h.State, h.Objects)
			}
		})
}

// untilDropped waits for the end of a resource.
func (w *world) untilDropped(r *fleet.Resource) {
	w.Helper()
	select {
	case <-r.Done():
	case <-time.After(time.Hour): // of the bubble's time
		w.Fatal("the resource was not dropped")
	}
}

func TestNegativeLimitIsAnError(t *testing.T) {
	_, err := fleet.New(fleet.Options{Limits: fleet.Limits{Bytes: -1}})
	says(t, err, "negative")
}
