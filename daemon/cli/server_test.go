package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// refuse answers with a Status.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	st := err.ErrStatus
	st.Kind, st.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(st.Code))
	json.NewEncoder(w).Encode(st) // the test sees it
}

// notYet answers like a daemon that is not ready.
func notYet(message string) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// metaPage answers with names, and with a token for more.
func metaPage(w http.ResponseWriter, token string, remaining int64, names ...string) {
	meta := metav1.ListMeta{Continue: token, ResourceVersion: "7"}
	if remaining >= 0 {
		meta.RemainingItemCount = &remaining
	}
	var items []any
	for _, n := range names {
		items = append(items, map[string]any{"metadata": map[string]any{"name": n}})
	}
	json.NewEncoder(w).Encode(map[string]any{"metadata": meta, "items": items}) // the test sees it
}

func askPods() *ask { return &ask{mapping: pods, path: "/x", params: url.Values{}} }

func TestListIsReadInPagesAndRestartedWhenTheyExpire(t *testing.T) {
	var asked []string
	forgotten := false
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("continue")
		asked = append(asked, token)
		switch {
		case token == "":
			metaPage(w, "one", -1, "a")
		case token == "one" && !forgotten:
			forgotten = true
			refuse(w, apierrors.NewResourceExpired("too old"))
		default:
			metaPage(w, "", -1, "b")
		}
	})
	defer s.close()
	found, err := s.list(t.Context(), askPods(), acceptMetadata, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found.len() != 2 || found.more {
		t.Errorf("found %d, more: %t", found.len(), found.more)
	}
	if diff := cmp.Diff([]string{"", "one", "", "one"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestLimitEndsTheListAndReportsTheRest(t *testing.T) {
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("limit"); got != "2" {
			t.Errorf("asked for %s", got)
		}
		metaPage(w, "more", 40, "a", "b")
	})
	defer s.close()
	found, err := s.list(t.Context(), askPods(), acceptMetadata, 2)
	if err != nil || !found.more || found.left != 40 || found.len() != 2 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestCountUsesTheServersNumberOrReadsAllPages(t *testing.T) {
	for _, c := range []struct {
		name      string
		remaining int64
		want      int64
		requests  int
	}{{"the server knows", 41, 42, 1}, {"the server does not know", -1, 3, 3}} {
		t.Run(c.name, func(t *testing.T) {
			requests := 0
			s := fake(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				switch q := r.URL.Query(); {
				case q.Get("limit") == "1":
					metaPage(w, "t", c.remaining, "a")
				case q.Get("continue") == "":
					metaPage(w, "u", -1, "a", "b")
				default:
					metaPage(w, "", -1, "c")
				}
			})
			defer s.close()
			n, _, err := s.count(t.Context(), askPods(), url.Values{})
			if err != nil || n != c.want || requests != c.requests {
				t.Errorf("counted %d with %d requests, %v; want %d with %d", n, requests, err, c.want, c.requests)
			}
		})
	}
}

func TestRequestsToADaemonThatIsNotReadyAreRetried(t *testing.T) {
	for _, ready := range []time.Duration{5 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			s := fake(t, func(w http.ResponseWriter, r *http.Request) {
				if time.Since(began) < ready {
					refuse(w, notYet("not mirrored completely yet"))
					return
				}
				metaPage(w, "", -1, "a")
			})
			defer s.close()
			var p page
			err := s.get(t.Context(), "/x", nil, acceptJSON, &p)
			if late := ready > syncTimeout; late != (ExitCode(err) == exitUnreachable) ||
				time.Since(began) > syncTimeout+time.Second {
				t.Errorf("ready after %v: %v after %v", ready, err, time.Since(began))
			}
		})
	}
}

func TestDiscoveryWarnsOnce(t *testing.T) {
	var warned bytes.Buffer
	s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 mirador "cluster eu is left out"`)
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte("{}")) // the test sees it
	})
	defer s.close()
	s.warn = &warned
	dc, err := s.discover("/fleet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dc.ServerGroups(); err != nil {
		t.Fatal(err)
	}
	if warned.String() != "warning: cluster eu is left out\n" { // once, for /api and /apis
		t.Errorf("warned %q", warned.String())
	}
}

func TestWarningsAndRefusalsReachTheUser(t *testing.T) {
	var warned bytes.Buffer
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 mirador "cluster eu is left out"`)
		switch r.URL.Path {
		case "/token":
			refuse(w, apierrors.NewUnauthorized("a valid token is needed"))
		case "/page":
			http.Error(w, "<html>", http.StatusTeapot)
		case "/away":
			http.Redirect(w, r, "http://example.com", http.StatusFound)
		default:
			metaPage(w, "", -1)
		}
	})
	defer s.close()
	s.warn = &warned
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var p page
	for path, want := range map[string]string{"/token": "--token-file",
		"/page": "is it a mirador daemon", "/away": "302"} {
		if err := s.get(t.Context(), path, nil, acceptJSON, &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", path, err, want)
		}
	}
	if warned.String() != "warning: cluster eu is left out\n" { // once, of three answers
		t.Errorf("warned %q", warned.String())
	}
}

// A user that may see nothing in a namespace gets the daemon's refusal, and one that may see a part is told so.
func TestRightsOfTheUserReachTheUser(t *testing.T) {
	var warned, shown bytes.Buffer
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/namespaces/lab/") {
			refuse(w, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("alice may not")))
			return
		}
		w.Header().Set("Mirador-Filtered", "true")
		fmt.Fprint(w, tableOf("1", "a@1"))
	})
	defer s.close()
	s.warn = &warned
	get := func(f selectFlags) error {
		a, err := f.ask(s, pods, nil)
		if err != nil {
			t.Fatal(err)
		}
		return (&getCommand{}).get(t.Context(), s, []*ask{a}, &shown)
	}
	if err := get(selectFlags{namespace: "lab"}); ExitCode(err) != exitFailed ||
		!strings.Contains(fmt.Sprint(err), "alice may not") || warned.Len() > 0 {
		t.Errorf("a refused namespace: %v, and %q", err, warned.String())
	}
	if err := get(selectFlags{all: true}); err != nil ||
		warned.String() != "warning: only what this user may see is shown\n" {
		t.Errorf("a filtered list: %v, and %q", err, warned.String())
	}
}

// rowEvent is an event of a watch of tables.
func rowEvent(what, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","rows":[%s]}}`+"\n", what, rowOf(name, version))
}

func rowOf(name, version string) string {
	return fmt.Sprintf(`{"cells":[%q,%q],"object":{"metadata":{"name":%q,"uid":%q,"resourceVersion":%q}}}`,
		name, version, name, name, version)
}

func tableOf(version string, rows ...string) string {
	var all []string
	for _, r := range rows {
		name, v, _ := strings.Cut(r, "@")
		all = append(all, rowOf(name, v))
	}
	return fmt.Sprintf(`{"kind":"Table","metadata":{"resourceVersion":%q},`+
		`"columnDefinitions":[{"name":"Name"},{"name":"State"}],"rows":[%s]}`, version, strings.Join(all, ","))
}

// A watch loses its history once and its connection once, and ends twice normally.
func TestWatchResumesAfterEveryKindOfEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var from []string
		lists, watches := 0, 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := fake(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				lists++
				fmt.Fprint(w, []string{"", tableOf("10", "a@1", "b@2", "c@3"), tableOf("30", "b@2", "c@25", "d@26")}[lists])
				return
			}
			watches++
			from = append(from, r.URL.Query().Get("resourceVersion"))
			switch watches {
			case 1:
				fmt.Fprint(w, rowEvent("MODIFIED", "a", "11"))
			case 2:
				fmt.Fprint(w, rowEvent("BOOKMARK", "", "15"), `{"type":"MODIFIED","obj`)
			case 3:
				fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,`+
					`"reason":"Expired","message":"gone"}}`)
			case 4:
				fmt.Fprint(w, rowEvent("DELETED", "b", "31"))
			default:
				cancel()
			}
		})
		defer s.close()
		var out, warned bytes.Buffer
		s.warn = &warned
		c := &watchCommand{events: true}
		if err := c.watch(ctx, s, askPods(), &out); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"10", "11", "15", "30", "31"}, from); diff != "" {
			t.Errorf("the versions of the watches differ: %s", diff)
		}
		want := `
EVENT   NAME   STATE
ADDED   a      1
ADDED   b      2
ADDED   c      3
MODIFIED   a      11
MODIFIED   c      25
ADDED      d      26
DELETED    a      11
DELETED    b      31
`
		if diff := cmp.Diff(want[1:], out.String()); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(warned.String(), "the connection was lost") {
			t.Errorf("warned %q", warned.String())
		}
	})
}

func TestRefusedWatchIsAnError(t *testing.T) {
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, tableOf("10"))
			return
		}
		refuse(w, apierrors.NewBadRequest("the expression is wrong"))
	})
	defer s.close()
	err := (&watchCommand{}).watch(t.Context(), s, askPods(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "the expression is wrong") {
		t.Errorf("ended with %v", err)
	}
}

func TestStatusPrintsALineForEveryChange(t *testing.T) {
	var b bytes.Buffer
	l := &statusLines{w: &b, last: map[string]string{}}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	report := func(state string, lag float64, objects int) *server.Report {
		return &server.Report{Now: now, Clusters: []server.ClusterReport{{Name: "eu", State: state, LastHeardSeconds: lag,
			Totals: server.ClusterTotals{Mirrored: 1, Synced: 1, Objects: objects},
			Resources: []server.ResourceReport{{Resource: "pods", State: "streaming", Synced: true, Objects: objects,
				LastHeardSeconds: lag}}}}}
	}
	for _, r := range []*server.Report{report("syncing", 0, 1), report("ready", 1, 1), report("ready", 2, 1),
		report("ready", 3, 2), {Now: now}} {
		if err := l.show(r); err != nil {
			t.Fatal(err)
		}
	}
	want := `
03:04:05 eu syncing synced=1/1
03:04:05 eu pods streaming synced=true objects=1 events=0 queue=0
03:04:05 eu ready synced=1/1
03:04:05 eu pods streaming synced=true objects=2 events=0 queue=0
03:04:05 eu gone
03:04:05 eu pods gone
`
	if diff := cmp.Diff(want[1:], b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTheReportIsReadByPages(t *testing.T) {
	var asked []string
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		page := server.Report{Clusters: []server.ClusterReport{{Name: "us"}}}
		if r.URL.Query().Get("continue") == "" {
			page = server.Report{Clusters: []server.ClusterReport{{Name: "asia"}, {Name: "eu"}}, Continue: "eu"}
		}
		json.NewEncoder(w).Encode(page)
	})
	defer s.close()
	for detailed, want := range map[bool][]string{
		true:  {"limit=100", "continue=eu&limit=100"},
		false: {"limit=100&resources=false", "continue=eu&limit=100&resources=false"},
	} {
		asked = nil
		r, err := s.report(t.Context(), detailed)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
		if len(r.Clusters) != 3 || r.Clusters[2].Name != "us" || r.Continue != "" {
			t.Errorf("read %+v", r)
		}
	}
}

func TestCountsOfClustersAreOfOneMoment(t *testing.T) {
	for _, busy := range []bool{false, true} {
		version, lists := 0, 0
		s := fake(t, func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			if busy {
				version++
			}
			var items []any
			clusters := strings.Split(q.Get("clusters"), ",")
			if q.Get("clusters") == "" {
				lists++
				clusters = []string{"eu", "us"}
			}
			for i, c := range clusters {
				for range i + 1 {
					items = append(items,
						map[string]any{"metadata": map[string]any{"name": "x", "annotations": map[string]string{clusterMark: c}}})
				}
			}
			// the test sees it
			json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": fmt.Sprint(version)},
				"items": items})
		})
		a := askPods()
		sizes, err := s.countEach(t.Context(), a, []string{"eu", "us"})
		s.close()
		want := map[string]int64{"eu": 1, "us": 1}
		if busy {
			want["us"] = 2 // as in the one list
		}
		if diff := cmp.Diff(want, sizes); err != nil || diff != "" || (lists == 1) != busy {
			t.Errorf("busy %t: %v after %d whole lists: %s", busy, err, lists, diff)
		}
	}
}

func TestOnlyADaemonThatDoesNotListenIsReplacedByTheCluster(t *testing.T) {
	for _, late := range []time.Duration{answerTime / 2, 2 * answerTime} {
		synctest.Test(t, func(t *testing.T) {
			s := fake(t, func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(late):
					fmt.Fprint(w, "ok")
				case <-r.Context().Done():
				}
			})
			defer s.close()
			found, err := s.listens(t.Context())
			if in := late < answerTime; found != in || (ExitCode(err) == exitUnreachable) == in {
				t.Errorf("an answer after %v: %t, %v", late, found, err)
			}
		})
	}
	s, err := newDaemonSession("http://"+unusedAddress(t), "", "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if found, err := s.listens(t.Context()); found || err != nil {
		t.Errorf("nothing listens: %t, %v", found, err)
	}
	other := fake(t, http.NotFound)
	defer other.close()
	if found, err := other.listens(t.Context()); found || ExitCode(err) != exitUnreachable {
		t.Errorf("another server: %t, %v", found, err)
	}
}

func TestWaitingForASyncingDaemonIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := fake(t, func(w http.ResponseWriter, r *http.Request) {
			if time.Since(began) < 5*time.Second {
				refuse(w, notYet("pods are not mirrored completely yet"))
				return
			}
			metaPage(w, "", -1, "a")
		})
		defer s.close()
		var warned bytes.Buffer
		s.warn = &warned
		var p page
		if err := s.get(t.Context(), "/x", nil, acceptJSON, &p); err != nil {
			t.Error(err)
		}
		if got := warned.String(); strings.Count(got, "\n") != 1 ||
			!strings.Contains(got, "still reading: pods are not mirrored") {
			t.Errorf("the output is %q", got)
		}
	})
}
