package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/internal/jsondiff"
)

// servePast serves two clusters that are the same one, with a data folder, and sets it as the daemon of the commands.
func servePast(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	d, err := disk.Open(t.TempDir(), disk.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	fl, err := fleet.New(fleet.Options{Include: []string{"configmaps", "namespaces", "events"}, WithoutOpenAPI: true,
		Disk: d, Logger: slog.New(slog.DiscardHandler)})
	for _, name := range []string{"eu", "us"} {
		if err == nil {
			err = fl.Join(name, c.Config(), fleet.Origin{Kind: "test"})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(fl, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{fl.Run, srv.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	web := httptest.NewServer(srv)
	t.Cleanup(func() {
		cancel()
		running.Wait()
		web.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("MIRADOR_SERVER", web.URL)
	awaitReady(t, "eu", "us")
}

// eventually runs a command until its output is as wanted.
func eventually(t *testing.T, want func(out string) bool, args ...string) string {
	t.Helper()
	late := time.Now().Add(30 * time.Second)
	for {
		s := run(t, "", args...)
		if s.err == nil && want(s.out) {
			return s.out
		}
		if time.Now().After(late) {
			t.Fatalf("mirador %s: %v\n%s%s", strings.Join(args, " "), s.err, s.out, s.errs)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestThePastIsReadFromADaemon(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	kube := contexts(t, c, "eu")
	ns := c.Namespace(t)
	servePast(t, c)
	write := func(manifest string) {
		t.Helper()
		ok(t, manifest, "apply", "-f", "-", "--kubeconfig", kube, "--context", "eu")
	}
	write(configMap(ns, "a", "red") + configMap(ns, "gone", "red"))
	eventually(t, func(out string) bool { return strings.Count(out, "\n") == 4 }, "get", "cm", "-n", ns, "-l", "color=red",
		"--no-headers", "--at", "-0s")
	then := time.Now().UTC().Format(time.RFC3339Nano)
	write(configMap(ns, "a", "blue") + configMap(ns, "new", "blue"))
	ok(t, "", "delete", "cm", "gone", "-n", ns, "--kubeconfig", kube, "--context", "eu")
	eventually(t, func(out string) bool { return out == "configmap/a\nconfigmap/new\n" }, "get", "cm", "-n", ns, "-l",
		"color=blue", "--cluster", "us", "-o", "name", "--at", "-0s")
	eventually(t, func(out string) bool { return out == "configmap/a\nconfigmap/new\n" }, "get", "cm", "-n", ns, "-l",
		"color", "--cluster", "eu", "-o", "name")

	got := ok(t, "", "get", "cm", "-n", ns, "--at", then, "-l", "color", "-o", "jsonpath={.items[*].data.color}")
	if got != "red red red red" {
		t.Errorf("then: %s", got)
	}
	got = ok(t, "", "diff", "cm", "-n", ns, "--since", then, "-l", "color", "--cluster", "eu")
	want := "~ configmaps eu NS/a\n    data.color: \"red\" -> \"blue\"\n"
	// Annotations of apply are a long line, and generations differ.
	if !strings.Contains(got, "- configmaps eu NS/gone\n") && !strings.Contains(got, "- configmaps eu "+ns+"/gone\n") ||
		!strings.Contains(got, "+ configmaps eu "+ns+"/new\n") ||
		!strings.Contains(got, "data.color: \"red\" -> \"blue\"\n") {
		t.Errorf("diff:\n%s\nwant as in\n%s", got, want)
	}
	all := run(t, "", "diff", "-n", ns, "--since", then)
	if all.err != nil || strings.Count(all.out, "~ configmaps") != 2 || strings.Contains(all.out, "mirador.dev") {
		t.Errorf("%v\n%s%s", all.err, all.out, all.errs)
	}
	if got := ok(t, "", "diff", "cm", "-n", ns, "--since", then, "-o", "jsonpath={.items[*].type}"); got !=
		"Changed Deleted Added Changed Deleted Added" {
		t.Errorf("diff: %s", got)
	}
	for _, args := range [][]string{{"history", "cm/a"}, {"history", "cm", "a"}} {
		got := ok(t, "", append(args, "-n", ns, "--cluster", "eu")...)
		lines := strings.Split(got, "\n")
		if !strings.HasPrefix(got, "TIME ") || !strings.Contains(lines[1], "Added") ||
			!strings.Contains(got, "data.color: \"red\" -> \"blue\"") || !strings.Contains(got, "mirador") {
			t.Errorf("%v:\n%s", args, got)
		}
	}
	if got := ok(t, "", "history", "cm", "-n", ns, "--since", then, "-o", "jsonpath={.items[*].type}"); strings.Count(got,
		"Updated") != 2 || strings.Count(got, "Deleted") != 2 || strings.Count(got, "Added") != 2 {
		t.Errorf("history: %s", got)
	}
	if got := ok(t, "", "history", "cm/gone", "-n", ns, "-o", "jsonpath={.items[*].type}"); strings.Count(got,
		"Added") != 2 || strings.Count(got, "Deleted") != 2 {
		t.Errorf("history of a name in all clusters: %s", got)
	}
	fails(t, exitNotFound, "as far back", "history", "cm/never", "-n", ns, "--cluster", "eu")
	fails(t, exitNotFound, "as far back", "history", "cm/never", "-n", ns)
	fails(t, exitFailed, "begins at", "get", "cm", "-n", ns, "--at", "-90d")
	fails(t, exitFailed, "no history is kept of events", "get", "events", "-n", ns, "--at", "-1s")
}

func TestMomentsAndTheirErrors(t *testing.T) {
	t.Setenv("MIRADOR_SERVER", "http://127.0.0.1:1")
	for names, args := range map[string][]string{
		"-15m or -2d, not":       {"get", "pods", "--at", "noon"},
		"-15m or -2d, not \"d\"": {"get", "pods", "--at", "d"},
		"in the future":          {"get", "pods", "--at", "2999-01-01T00:00:00Z"},
		"leave --at out":         {"get", "pods", "-w", "--at", "-1m"},
		"is not after":           {"diff", "--since", "1h", "--until", "2h"},
		"no --where":             {"history", "pods", "--where", "true"},
		"at most one name":       {"history", "pods", "a", "b"},
	} {
		fails(t, exitUsage, names, args...)
	}
	now := time.Date(2026, 11, 17, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"-15m": "2026-11-17T09:45:00Z", "15m": "2026-11-17T09:45:00Z",
		"2d": "2026-11-15T10:00:00Z", "-1d1h": "2026-11-16T09:00:00Z",
		"2026-11-17T09:00:00+02:00": "2026-11-17T09:00:00+02:00",
	} {
		if got, err := moment("at", text, now); got != want || err != nil {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestDiffBeginsWhereTheHistoryDoes(t *testing.T) {
	const early, begin = "2026-11-17T09:00:00Z", "2026-11-17T09:41:15Z"
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("history") == "gaps":
			json.NewEncoder(w).Encode(server.ChangeList{Begin: begin}) // the test sees it
		case q.Get("at") == early:
			refuse(w, &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonGone,
				Message: fmt.Sprintf("the history of %s of cluster \"eu\" begins at %s", strings.Trim(r.URL.Path, "/"), begin)}})
		case q.Get("at") == begin:
			metaPage(w, "", -1)
		default:
			metaPage(w, "", -1, "new")
		}
	})
	defer s.close()
	var warned bytes.Buffer
	s.warn = &warned
	show := s.holdWarnings()
	c := &diffCommand{}
	c.clusters = []string{"eu"}
	for _, resource := range []string{"pods", "services", "jobs.batch"} {
		m := *pods
		m.gvr.Resource = resource
		a := &ask{mapping: &m, path: "/" + resource, params: url.Values{}}
		c.sinceGiven = false
		out, from, err := c.compareFrom(t.Context(), s, a, early, "")
		if err != nil || from != begin || len(out) != 1 || out[0].Type != "Added" {
			t.Errorf("%s: %+v from %s, %v", resource, out, from, err)
		}
		c.sinceGiven = true
		if _, _, err = c.compareFrom(t.Context(), s, a, early, ""); !apierrors.IsGone(err) {
			t.Errorf("%s since a moment before the history: %v", resource, err)
		}
		err = c.nothingCompared(t.Context(), &session{base: s.base, http: s.http, warn: io.Discard}, []*ask{a}, err)
		if err == nil || !strings.HasSuffix(err.Error(), "09:41:15.000Z; try --since 2026-11-17T09:41:15.000Z") {
			t.Error(err)
		}
	}
	show()
	if got := warned.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "(and 2 more like this)") {
		t.Errorf("warned %q", got)
	}
}

// The changes of a list do not have what was there when the history began, so those of each object are read.
func TestHistoryOfANameInTheFleetIsThatOfEachObject(t *testing.T) {
	const first, second, third = "2026-11-17T09:00:00Z", "2026-11-17T09:30:00Z", "2026-11-17T10:00:00Z"
	known := true
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		change := func(cluster, what, at string) server.Change {
			return server.Change{Cluster: cluster, Namespace: "shop", Name: "web", Type: what, Time: at}
		}
		var list server.ChangeList
		switch q := r.URL.Query(); {
		case r.URL.Path == "/clusters/eu/api/v1/namespaces/shop/pods/web/history":
			list.Begins, list.Begin = map[string]string{"eu": first}, first
			list.Items = []server.Change{change("eu", "Added", first), change("eu", "Deleted", third)}
		case r.URL.Path == "/clusters/us/api/v1/namespaces/shop/pods/web/history":
			list.Begins, list.Begin = map[string]string{"us": second}, second
			list.Items = []server.Change{change("us", "Added", second)}
		case q.Get("history") == "true" && known:
			list.Items = []server.Change{change("eu", "Deleted", third)}
		case q.Get("history") == "true":
		case !known:
			metaPage(w, "", -1)
			return
		default:
			fmt.Fprint(w, `{"items":[{"metadata":{"name":"web","namespace":"us.shop","annotations":{"`+clusterMark+`":"us"}}}]}`)
			return
		}
		json.NewEncoder(w).Encode(list) // the test sees it
	})
	defer s.close()
	a := askPods()
	a.fleet, a.names = true, []string{"web"}
	got, err := s.changes(t.Context(), a, "", "")
	if err != nil || len(got.Items) != 3 || got.Items[0].Type != "Added" || got.Items[1].Cluster != "us" ||
		got.Items[2].Type != "Deleted" || got.Begin != second || len(got.Begins) != 2 {
		t.Errorf("the history is %+v, %v", got, err)
	}
	known = false
	if _, err := s.changes(t.Context(), a, "", ""); !apierrors.IsNotFound(err) {
		t.Errorf("the history of a name that never was: %v", err)
	}
}

func TestFieldsAreShownAsPaths(t *testing.T) {
	got := fieldLines([]jsondiff.Change{
		{Op: "replace", Path: "/spec/containers/0/image", Old: "a", New: "b"},
		{Op: "add", Path: "/metadata/labels/a.b~1c", New: "x\n\x1b"},
		{Op: "remove", Path: "/spec/paused", Old: true},
	}, 0)
	want := []string{`spec.containers[0].image: "a" -> "b"`, `+ metadata.labels['a.b/c']: "x\n\u001b"`,
		`- spec.paused: true`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestATimelineDrawsGaps(t *testing.T) {
	c := &historyCommand{}
	list := &server.ChangeList{Items: []server.Change{
		{Time: "2026-11-17T10:00:00.0001Z", Cluster: "eu", Namespace: "shop", Name: "web", Type: "Added",
			By: []server.ChangedBy{{Manager: "helm"}}},
		{Time: "2026-11-17T12:00:00Z", Cluster: "eu", Namespace: "shop", Name: "web", Type: "Updated",
			Changes: []jsondiff.Change{{Op: "add", Path: "/a", New: 1}, {Op: "add", Path: "/b", New: 2}},
			By:      []server.ChangedBy{{Manager: "kubelet", Subresource: "status"}}},
	}, Gaps: []server.ChangeGap{{Cluster: "eu", From: "2026-11-17T11:00:00Z", To: "2026-11-17T11:30:00Z"},
		{Cluster: "eu", From: "2026-11-17T12:30:00Z"}}}
	var b strings.Builder
	a := askPods()
	a.names = []string{"web"}
	if err := c.showChanges(&b, &session{warn: io.Discard}, a, list); err != nil {
		t.Fatal(err)
	}
	want := `TIME                       TYPE      BY                 CHANGE
2026-11-17T10:00:00.001Z   Added     helm
----- was not watched from 2026-11-17T11:00:00.000Z to 2026-11-17T11:30:00.000Z -----
2026-11-17T12:00:00.000Z   Updated   kubelet (status)   + a: 1
                                                        + b: 2
----- was not watched from 2026-11-17T12:30:00.000Z on -----
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
