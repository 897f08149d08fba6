package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// withDisk runs a fleet on a data folder until test returns.
func withDisk(t *testing.T, dir string, o fleet.Options, test func(w *world)) {
	t.Helper()
	withOpenDisk(t, dir, o, func(w *world, _ *disk.Disk) { test(w) })
}

// withOpenDisk is withDisk for a test that uses the disk itself.
func withOpenDisk(t *testing.T, dir string, o fleet.Options, test func(w *world, d *disk.Disk)) {
	t.Helper()
	w := &world{T: t, logs: &logs{}}
	o.Logger = w.logs.logger()
	d, err := disk.Open(dir, disk.Options{Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	o.Disk = d
	if w.f, err = fleet.New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.f.Run(ctx) }()
	test(w, d)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close the disk: %v", err)
	}
	if t.Failed() {
		t.Log(w.logs)
	}
}

func labeled(name, app string) *corev1.Pod {
	p := pod("web", name)
	p.Labels = map[string]string{"app": app}
	return p
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// keysOf returns the sorted keys of a resource.
func keysOf(r *fleet.Resource) string {
	var out []string
	entries, _ := r.Snapshot().Page("", 0)
	for _, e := range entries {
		out = append(out, string(e.Key))
	}
	return strings.Join(out, " ")
}

func TestAfterARestartTheDiskIsServedAndWatchesResume(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(s)
		defer stop()
		create(t, s, namespace("kube-system"), namespace("web"), labeled("a", "x"), pod("web", "b"))
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			create(t, s, labeled("c", "x"))
			w.until("the new pod is mirrored", func() bool { return keysOf(w.resource(c, podsGVR)) == "web/a web/b web/c" })
			time.Sleep(time.Second) // until it is on disk
		})
		if _, err := s.Delete(pod("web", "b")); err != nil {
			t.Fatal(err)
		}
		create(t, s, pod("web", "d"))

		refuse := s.Inject(informertest.Fault{Refuse: true})
		before := len(s.Requests())
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.until("the disk is read", func() bool { r, ok := c.Resource(podsGVR); return ok && r.Synced() })
			r, _ := c.Resource(podsGVR)
			if got := keysOf(r); got != "web/a web/b web/c" || !r.Restored() {
				t.Errorf("restored %v: %s", r.Restored(), got)
			}
			labeled := 0
			for range r.Snapshot().ByIndex("label", "app=x") {
				labeled++
			}
			if labeled != 2 {
				t.Errorf("%d pods have the label app=x", labeled)
			}
			if first, err := c.Discovered(); first.IsZero() || err != nil || c.Version() == nil {
				t.Errorf("discovered %v, %v; version %s", first, err, c.Version())
			}
			w.until("the cluster is unreachable", func() bool { return c.Health().State == fleet.Unreachable })
			time.Sleep(time.Minute)
			if h := c.Health(); h.Restored != h.Resources || h.LastEventAge < time.Minute || h.Synced != h.Resources {
				t.Errorf("health %+v", h)
			}
			refuse()
			w.untilState(c, fleet.Ready)
			w.until("the changes are known", func() bool { return keysOf(r) == "web/a web/c web/d" })
			if r.Restored() || c.Health().Restored != 0 {
				t.Error("still restored")
			}
			for _, q := range s.Requests()[before:] {
				if q.Verb == "list" {
					t.Errorf("a list: %+v", q)
				}
			}
		})
	})
}

// savedPods makes a data folder with a cluster that has pods web/a and web/b.
func savedPods(t *testing.T, dir string, o fleet.Options) (*informertest.Server, *rest.Config, func()) {
	t.Helper()
	s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
	cfg, stop := informertest.Pipe(s)
	create(t, s, namespace("kube-system"), pod("web", "a"), pod("web", "b"))
	withDisk(t, dir, o, func(w *world) {
		w.untilState(w.join("eu", cfg), fleet.Ready)
		time.Sleep(time.Second)
	})
	return s, cfg, stop
}

// lists returns the resources that were listed, by a list or a watch with an initial state.
func lists(requests []informertest.Request) (all []string) {
	for _, q := range requests {
		if q.Verb == "list" || q.Verb == "watch" && q.Query.Get("sendInitialEvents") == "true" {
			all = append(all, q.Resource.Resource)
		}
	}
	return all
}

func TestWhatIsOnDiskIsNotMixedWithAnotherClusterOrHistory(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *informertest.Server) (*informertest.Server, *rest.Config,
		func()){
		"another cluster": func(t *testing.T, _ *informertest.Server) (*informertest.Server, *rest.Config, func()) {
			s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
			for range 20 { // its versions are higher
				create(t, s, namespace("x"))
				if _, err := s.Delete(namespace("x")); err != nil {
					t.Fatal(err)
				}
			}
			create(t, s, namespace("kube-system"), pod("web", "c"))
			cfg, stop := informertest.Pipe(s)
			return s, cfg, stop
		},
		"a restored etcd": func(t *testing.T, s *informertest.Server) (*informertest.Server, *rest.Config, func()) {
			for _, o := range []*corev1.Pod{pod("web", "a"), pod("web", "b")} {
				if _, err := s.Delete(o); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Restore("2"); err != nil { // only kube-system
				t.Fatal(err)
			}
			create(t, s, pod("web", "c"))
			cfg, stop := informertest.Pipe(s)
			return s, cfg, stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s, _, stop := savedPods(t, dir, fleet.Options{})
				s, cfg, stopNext := change(t, s)
				stop()
				defer stopNext()
				for start := range 2 { // the second start has the new cluster on disk
					before := len(s.Requests())
					withDisk(t, dir, fleet.Options{}, func(w *world) {
						c := w.join("eu", cfg)
						w.until("the pods of the new cluster are shown", func() bool {
							r, ok := c.Resource(podsGVR)
							if !ok || !r.Synced() || r.Restored() {
								return false
							}
							if got := keysOf(r); got != "web/c" {
								t.Fatalf("mixed: %s", got)
							}
							return true
						})
						w.untilState(c, fleet.Ready)
						time.Sleep(time.Second)
					})
					if got := lists(s.Requests()[before:]); (len(got) == 0) != (start == 1) {
						t.Errorf("start %d: listed %v", start, got[:min(len(got), 3)])
					}
				}
			})
		})
	}
}

// The UID of a cluster is no secret, so another address of a Secret needs more than that to have what is on disk.
func TestAnotherAddressOfASecretHasNotTheClusterOnDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(s)
		defer stop()
		create(t, s, namespace("kube-system"), pod("web", "a"))
		for start, c := range []struct {
			host   string
			listed bool
		}{{cfg.Host, true}, {cfg.Host, false}, {"http://elsewhere.invalid", true}, {"http://elsewhere.invalid", false}} {
			before := len(s.Requests())
			withDisk(t, dir, fleet.Options{}, func(w *world) {
				cfg := rest.CopyConfig(cfg)
				cfg.Host = c.host
				if err := w.f.Join("eu", cfg, fleet.Origin{Kind: fleet.FromSecret}); err != nil {
					t.Fatal(err)
				}
				eu, _ := w.f.Cluster("eu")
				synctest.Wait()
				if len(eu.Resources()) > 0 && eu.Health().Restored > 0 && c.listed {
					t.Errorf("start %d at %s: what is on disk is served", start, c.host)
				}
				w.untilState(eu, fleet.Ready)
				time.Sleep(time.Second)
			})
			if got := lists(s.Requests()[before:]); (len(got) > 0) != c.listed {
				t.Errorf("start %d at %s: listed %v", start, c.host, got[:min(len(got), 3)])
			}
		}
	})
}

// Another server could say that users may read what is mirrored from the last one.
func TestAServerIsNotAskedAboutRightsBeforeItIsRecognised(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		_, _, stop := savedPods(t, dir, fleet.Options{})
		stop()
		other := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		create(t, other, namespace("kube-system"))
		cfg, stop := informertest.Pipe(other)
		defer stop()
		var silent atomic.Bool
		var asked atomic.Int32
		silent.Store(true)
		cfg = wrapped(cfg, func(r *http.Request) *http.Response {
			switch {
			case r.Method == http.MethodPost:
				asked.Add(1)
				return replyJSON(`{"apiVersion":"authorization.k8s.io/v1","kind":"` +
					map[bool]string{true: "SubjectAccessReview", false: "SelfSubjectRulesReview"}[strings.Contains(r.URL.Path,
						"subjectaccess")] + `","status":{"allowed":true}}`)
			case silent.Load():
				return reply(http.StatusServiceUnavailable, "text/plain", strings.NewReader(""))
			}
			return nil
		})
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.until("the disk is read", func() bool { r, ok := c.Resource(podsGVR); return ok && r.Synced() })
			_, access := c.ReviewAccess(w.Context(), authorizationv1.SubjectAccessReviewSpec{User: "ann"})
			_, rules := c.ReviewOwnRules(w.Context(), "default")
			says(t, access, `ask cluster "eu" for a SubjectAccessReview`, "not known yet")
			says(t, rules, `ask cluster "eu" for a SelfSubjectRulesReview`, "not known yet")
			if n := asked.Load(); n > 0 {
				t.Errorf("the server was asked %d times", n)
			}
			silent.Store(false)
			w.until("the server is known to be another cluster", func() bool {
				r, ok := c.Resource(podsGVR)
				return ok && r.Synced() && !r.Restored()
			})
			status, err := c.ReviewAccess(w.Context(), authorizationv1.SubjectAccessReviewSpec{User: "ann"})
			if err != nil || !status.Allowed {
				t.Errorf("then: %+v %v", status, err)
			}
			if _, err := c.ReviewOwnRules(w.Context(), "default"); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestOnlyWhatExpiredIsListedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		create(t, s, pod("web", "c"))
		for i := range 200 {
			create(t, s, pod("other", fmt.Sprint("p", i)))
		}
		if err := s.Compact(s.Version()); err != nil {
			t.Fatal(err)
		}
		before := len(s.Requests())
		withDisk(t, dir, fleet.Options{Include: []string{"pods", "namespaces"}}, func(w *world) {
			c := w.join("eu", cfg)
			r := w.resource(c, podsGVR)
			w.until("the pods are current", func() bool { return r.Snapshot().Len() == 203 && !r.Restored() })
			w.untilState(c, fleet.Ready)
		})
		for _, q := range s.Requests()[before:] {
			if q.Verb == "watch" && q.Query.Get("resourceVersion") == "" {
				t.Errorf("a watch from no version: %+v", q)
			}
		}
	})
}

// A state that was written under other rules for redaction may have what is redacted now.
func TestAStateWithOtherRedactionsIsNotRestored(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		before := len(s.Requests())
		withDisk(t, dir, fleet.Options{Redact: []string{"pods:/spec/containers/*/env/*/value"}}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			w.resource(c, podsGVR)
		})
		if got := lists(s.Requests()[before:]); len(got) != 1 || got[0] != "pods" {
			t.Errorf("listed: %v", got)
		}
	})
}

// A cluster that cannot be recognised is mirrored, and not kept.
func TestAClusterThatCannotBeRecognisedIsNotRestored(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		denied := wrapped(cfg, func(r *http.Request) *http.Response {
			if !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
				return nil
			}
			return reply(http.StatusForbidden, "application/json",
				strings.NewReader(`{"kind":"Status","apiVersion":"v1","code":403,"message":"no"}`))
		})
		if _, err := s.Delete(pod("web", "a")); err != nil {
			t.Fatal(err)
		}
		before := len(s.Requests())
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", denied)
			w.untilState(c, fleet.Ready)
			if got := keysOf(w.resource(c, podsGVR)); got != "web/b" {
				t.Errorf("pods: %s", got)
			}
		})
		if len(lists(s.Requests()[before:])) == 0 {
			t.Error("nothing was listed")
		}
	})
}

func TestSecretsAreNotOnDiskWithoutAKey(t *testing.T) {
	dir := t.TempDir()
	const text = "do-not-write-this-text"
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(s)
		defer stop()
		create(t, s, namespace("kube-system"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "x",
			Labels: map[string]string{"a": text}}})
		withDisk(t, dir, fleet.Options{Secrets: true, SecretData: true}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			w.resource(c, secretsGVR)
			time.Sleep(time.Second)
		})
	})
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			t.Errorf("%s has a secret", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// changesSince describes the changes of a resource after a version.
func changesSince(t *testing.T, r *fleet.Resource, v object.Version) string {
	t.Helper()
	log, err := r.Since(v)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for l := range log {
		fmt.Fprintf(&out, "%s %s", l.Version, l.Key)
		for _, e := range []*fleet.Entry{l.Old, l.New} {
			if e == nil {
				out.WriteString(" -")
			} else {
				fmt.Fprintf(&out, " %s %s", e.Version, fleet.Bytes(e, nil))
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// The changes before a restart are known after it, so that watches of clients go on.
func TestChangesBeforeARestartCanBeResumed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		var versions []object.Version
		var want []string
		rnd := rand.New(rand.NewPCG(3, 4))
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Second) // until the disk follows
			for range 40 {
				versions = append(versions, s.Version())
				for range rnd.IntN(40) { // the disk has them in several chunks
					p := pod("web", fmt.Sprint("p", rnd.IntN(15)))
					p.Annotations = map[string]string{"n": fmt.Sprint(rnd.Uint64())}
					switch rnd.IntN(4) {
					case 0:
						_, _ = s.Delete(p) // it may not exist
					default:
						if _, err := s.Create(p); err != nil {
							if _, err := s.Update(p); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
			}
			w.until("everything is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			time.Sleep(time.Second)
			for _, v := range versions {
				want = append(want, changesSince(t, r, v))
			}
		})
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			r := w.resource(c, podsGVR)
			for _, i := range rnd.Perm(len(versions)) {
				if got := changesSince(t, r, versions[i]); got != want[i] {
					t.Fatalf("after version %s:\n%s\nwant\n%s", versions[i], got, want[i])
				}
			}
			if log, err := r.Since("1"); err == nil {
				t.Errorf("the changes after version 1, before the disk followed, are known: %v", log)
			}
			w.untilState(c, fleet.Ready)
			create(t, s, pod("web", "new"))
			w.until("the new pod is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			if got := changesSince(t, r, versions[0]); !strings.HasPrefix(got, want[0]) || !strings.Contains(got, "web/new") {
				t.Errorf("with a change after the restart:\n%s\nwant it to begin with\n%s", got, want[0])
			}
			time.Sleep(11 * time.Minute)
			if _, err := r.Since(versions[0]); !errors.Is(err, store.ErrGone) {
				t.Errorf("after the age of the log: %v", err)
			}
		})
	})
}

// Each chunk of changes is read from disk for the first client that continues in it, and for no other.
func TestAChunkOfChangesIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		var versions []object.Version
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Second)
			for i := range 300 { // a chunk has 256 of them
				versions = append(versions, s.Version())
				create(t, s, pod("web", fmt.Sprint("p", i)))
			}
			w.until("everything is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			time.Sleep(time.Second)
		})
		withOpenDisk(t, dir, fleet.Options{}, func(w *world, d *disk.Disk) {
			r := w.resource(w.join("eu", cfg), podsGVR)
			first := changesSince(t, r, versions[290])
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if got := changesSince(t, r, versions[265]); strings.Count(got, "\n") != 35 || !strings.HasSuffix(got, first) {
				t.Errorf("in the chunk that was read: %s", got)
			}
			if _, err := r.Since(versions[100]); !errors.Is(err, store.ErrGone) {
				t.Errorf("in a chunk that was not read: %v", err)
			}
		})
	})
}

// The first state that the cluster confirms does not hide the changes before the restart from clients that come later.
func TestChangesBeforeARestartCanBeResumedLater(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		var seen object.Version
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Second)
			seen = r.Snapshot().Version()
			create(t, s, pod("web", "c"))
			w.until("it is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			time.Sleep(time.Second)
		})
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Minute)
			create(t, s, pod("web", "d"))
			w.until("it is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			if got := changesSince(t, r, seen); !strings.Contains(got, "web/c") || !strings.Contains(got, "web/d") ||
				strings.Count(got, "\n") != 2 {
				t.Errorf("changes since %s: %s", seen, got)
			}
		})
	})
}

// Changes from before a restart are not given to clients when the cluster's history was reset since: they may never have
// been.
func TestChangesOfAReplacedHistoryAreNotResumed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		var seen, kept object.Version
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Second)
			seen = r.Snapshot().Version()
			create(t, s, pod("web", "c"))
			kept = s.Version()
			create(t, s, pod("web", "d"))
			w.until("it is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			time.Sleep(time.Second)
		})
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			reached := s.Version()
			defer s.Inject(informertest.Fault{Verbs: []string{"watch"}, Code: http.StatusGone,
				Match: func(r *http.Request) bool { return r.URL.Query().Get("resourceVersion") == string(reached) }})()
			if err := s.Restore(kept); err != nil {
				t.Fatal(err)
			}
			w.until("the reset is known", func() bool { return keysOf(r) == "web/a web/b web/c" })
			if _, err := r.Since(seen); !errors.Is(err, store.ErrGone) {
				t.Errorf("changes since %s: %v, want %v", seen, err, store.ErrGone)
			}
		})
	})
}

// A state from after a reset of the cluster's history has no mark until the disk knows of the reset: versions that
// begin again may be those of earlier states on disk.
func TestAStateAfterAResetIsNotMarkedAsOneBefore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			kept := s.Version()
			create(t, s, pod("web", "c"))
			w.until("it is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			time.Sleep(time.Second) // until the disk follows
			before, ok := r.Mark(r.Snapshot())
			if !ok {
				t.Error("no mark")
			}
			reached := s.Version()
			defer s.Inject(informertest.Fault{Verbs: []string{"watch"}, Code: http.StatusGone,
				Match: func(r *http.Request) bool { return r.URL.Query().Get("resourceVersion") == string(reached) }})()
			if err := s.Restore(kept); err != nil {
				t.Fatal(err)
			}
			w.until("the reset is known", func() bool { return keysOf(r) == "web/a web/b" })
			if m, ok := r.Mark(r.Snapshot()); ok && m.Segment == before.Segment {
				t.Errorf("%v, and before the reset %v", m, before)
			}
			time.Sleep(time.Second)
			if m, ok := r.Mark(r.Snapshot()); !ok || m.Segment == before.Segment {
				t.Errorf("when the disk follows: %v %v, and before the reset %v", m, ok, before)
			}
		})
	})
}

// Two changes of an object at the same time are two changes after a restart as well.
func TestChangesAtTheSameTimeAreResumedOneByOne(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		var first object.Version
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Second) // until the disk follows
			create(t, s, pod("web", "c"))
			synctest.Wait()
			first = r.Snapshot().Version()
			changed := pod("web", "c")
			changed.SetLabels(map[string]string{"changed": "true"})
			if _, err := s.Update(changed); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if first == s.Version() || r.Snapshot().Version() != s.Version() {
				t.Fatalf("mirrored are %s and %s of %s", first, r.Snapshot().Version(), s.Version())
			}
			time.Sleep(time.Second)
		})
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			log, err := w.resource(c, podsGVR).Since(first)
			if err != nil {
				t.Fatal(err)
			}
			for l := range log {
				if l.Key != "web/c" || l.Old == nil || l.Old.Version != first {
					t.Errorf("%s was %v", l.Key, l.Old)
				}
			}
		})
	})
}

// A client that comes back late can still resume: the disk follows the mirror again, and the changes before are kept.
func TestChangesBeforeARestartCanBeResumedWhenTheDiskFollowsAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, cfg, stop := savedPods(t, dir, fleet.Options{})
		defer stop()
		var from object.Version
		var want string
		withDisk(t, dir, fleet.Options{}, func(w *world) {
			c := w.join("eu", cfg)
			w.untilState(c, fleet.Ready)
			r := w.resource(c, podsGVR)
			time.Sleep(time.Second) // until the disk follows
			from = s.Version()
			create(t, s, pod("web", "c"), pod("web", "d"))
			w.until("everything is mirrored", func() bool { return r.Snapshot().Version() == s.Version() })
			time.Sleep(time.Second)
			want = changesSince(t, r, from)
		})
		for _, name := range []string{"", "e", "f"} {
			if name != "" {
				create(t, s, pod("web", name)) // while the daemon is down
			}
			withDisk(t, dir, fleet.Options{}, func(w *world) {
				c := w.join("eu", cfg)
				w.untilState(c, fleet.Ready)
				time.Sleep(2 * time.Second)
				got := changesSince(t, w.resource(c, podsGVR), from)
				if !strings.HasPrefix(got, want) || name != "" && !strings.Contains(got, "web/"+name) {
					t.Errorf("the changes are\n%s\nwant them to begin with\n%s", got, want)
				}
			})
		}
	})
}
