package informertest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// onPods runs a test inside a synctest bubble, with a server and a client for its pods, once in JSON and once in
// protobuf.
func onPods(t *testing.T, test func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface)) {
	for _, encoding := range []string{"json", "protobuf"} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := informertest.NewServer()
				cfg, stop := informertest.Pipe(s)
				defer stop()
				if encoding == "protobuf" {
					cfg = protobuf(cfg)
				} else {
					cfg = jsonOnly(cfg)
				}
				test(t, s, kubernetes.NewForConfigOrDie(cfg).CoreV1().Pods("default"))
			})
		})
	}
}

// events reads n events and formats each as type, name and version.
func events(t *testing.T, w watch.Interface, n int) []string {
	t.Helper()
	var out []string
	for range n {
		e, ok := <-w.ResultChan()
		if !ok {
			return append(out, "end")
		}
		if st, isStatus := e.Object.(*metav1.Status); isStatus {
			out = append(out, fmt.Sprintf("%s %d %s", e.Type, st.Code, st.Reason))
			continue
		}
		m, err := meta.Accessor(e.Object)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %s %s", e.Type, m.GetName(), m.GetResourceVersion())
		if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			text += " initial end"
		}
		out = append(out, text)
	}
	return out
}

func expect(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, events(t, w, len(want))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// open starts a watch that is stopped when the test ends.
func open(t *testing.T, pods typedcorev1.PodInterface, o metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := pods.Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func names(l *corev1.PodList) string {
	var out []string
	for _, p := range l.Items {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

func watchList() metav1.ListOptions {
	yes := true
	return metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true}
}

func TestAllPagesOfAListHaveOneVersion(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		mustCreate(t, s, pod("a", nil), pod("b", nil), pod("d", nil), pod("e", nil), pod("f", nil))
		first, err := pods.List(t.Context(), metav1.ListOptions{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		if names(first) != "a b" || first.RemainingItemCount == nil || *first.RemainingItemCount != 3 {
			t.Fatalf("first page %q, remaining %v", names(first), first.RemainingItemCount)
		}
		mustCreate(t, s, pod("c", nil))
		s.Delete(pod("d", nil))
		second, err := pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
		if err != nil {
			t.Fatal(err)
		}
		if names(second) != "d e" || second.ResourceVersion != first.ResourceVersion {
			t.Errorf("second page %q at %s, want the pods at version %s", names(second), second.ResourceVersion,
				first.ResourceVersion)
		}
		if err := s.Compact(s.Version()); err != nil {
			t.Fatal(err)
		}
		_, err = pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: second.Continue})
		if !apierrors.IsResourceExpired(err) {
			t.Fatalf("a continue token from before the compaction: %v", err)
		}
		token := err.(apierrors.APIStatus).Status().Continue
		rest, err := pods.List(t.Context(), metav1.ListOptions{Continue: token})
		if err != nil || names(rest) != "f" || rest.Continue != "" {
			t.Errorf("the rest at the newest version: %q, %v", names(rest), err)
		}
		if _, err := pods.List(t.Context(), metav1.ListOptions{Continue: "nonsense"}); !apierrors.IsBadRequest(err) {
			t.Errorf("an invalid token: %v", err)
		}
	})
}

func TestListHonoursResourceVersions(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		mustCreate(t, s, pod("a", nil))
		v2 := mustCreate(t, s, pod("b", nil))
		mustCreate(t, s, pod("c", nil))
		for _, c := range []struct {
			o     metav1.ListOptions
			names string
			check func(error) bool
		}{
			{o: metav1.ListOptions{}, names: "a b c"},
			{o: metav1.ListOptions{ResourceVersion: "0", Limit: 1}, names: "a b c"},
			{o: metav1.ListOptions{ResourceVersion: string(v2)}, names: "a b c"},
			{o: metav1.ListOptions{ResourceVersion: string(v2), Limit: 5}, names: "a b"},
			{o: metav1.ListOptions{ResourceVersion: string(v2), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
				names: "a b"},
			{o: metav1.ListOptions{ResourceVersion: string(v2), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				Limit: 5}, names: "a b c"},
			{o: metav1.ListOptions{ResourceVersion: "99"}, check: func(err error) bool {
				return apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
			}},
			{o: metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact}, check: apierrors.IsInvalid},
			{o: metav1.ListOptions{ResourceVersion: "x"}, check: apierrors.IsBadRequest},
			{o: metav1.ListOptions{FieldSelector: "metadata.name=b"}, names: "b"},
			{o: metav1.ListOptions{FieldSelector: "spec.nodeName!=node-b"}, names: "a c"},
			{o: metav1.ListOptions{FieldSelector: "spec.nonsense=b"}, check: apierrors.IsBadRequest},
			{o: metav1.ListOptions{LabelSelector: "a in (,"}, check: apierrors.IsBadRequest},
		} {
			l, err := pods.List(t.Context(), c.o)
			switch {
			case c.check != nil && !c.check(err):
				t.Errorf("%v: %v", c.o, err)
			case c.check == nil && (err != nil || names(l) != c.names):
				t.Errorf("%v: %q, %v, want %q", c.o, names(l), err, c.names)
			}
		}
		s.Compact(s.Version())
		_, err := pods.List(t.Context(),
			metav1.ListOptions{ResourceVersion: string(v2), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("a compacted version: %v", err)
		}
	})
}

func TestWatchListSendsTheStateThenABookmarkThenChanges(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		mustCreate(t, s, pod("b", nil), pod("a", nil))
		w := open(t, pods, watchList())
		expect(t, w, "ADDED a 3", "ADDED b 2", "BOOKMARK  3 initial end")
		mustCreate(t, s, pod("c", nil))
		s.Delete(pod("a", nil))
		expect(t, w, "ADDED c 4", "DELETED a 5")
		if _, err := pods.Watch(t.Context(),
			metav1.ListOptions{SendInitialEvents: watchList().SendInitialEvents}); !apierrors.IsInvalid(err) {
			t.Errorf("sendInitialEvents without a match: %v", err)
		}
		o := watchList()
		o.ResourceVersion = "99"
		expect(t, open(t, pods, o), "ERROR 504 Timeout", "end")
	})
}

func TestWatchStartsAtTheRequestedVersion(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		mustCreate(t, s, pod("a", nil))
		s.Delete(pod("a", nil))
		mustCreate(t, s, pod("b", nil))
		expect(t, open(t, pods, metav1.ListOptions{ResourceVersion: "1"}), "ADDED a 2", "DELETED a 3", "ADDED b 4")
		expect(t, open(t, pods, metav1.ListOptions{ResourceVersion: "0"}), "ADDED b 4")
		expect(t, open(t, pods, metav1.ListOptions{}), "ADDED b 4")
		future := open(t, pods, metav1.ListOptions{ResourceVersion: "5"})
		synctest.Wait()
		mustCreate(t, s, pod("c", nil), pod("d", nil))
		expect(t, future, "ADDED d 6")
	})
}

func TestWatchOfACompactedVersionGetsAnErrorEvent(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		v := mustCreate(t, s, pod("a", nil))
		early := open(t, pods, metav1.ListOptions{ResourceVersion: string(v)})
		s.Stall()
		mustCreate(t, s, pod("b", nil), pod("c", nil))
		if err := s.Compact(s.Version()); err != nil {
			t.Fatal(err)
		}
		s.Resume()
		expect(t, early, "ADDED b 3", "ADDED c 4")
		expect(t, open(t, pods, metav1.ListOptions{ResourceVersion: string(v)}), "ERROR 410 Expired", "end")
		latest := open(t, pods, metav1.ListOptions{ResourceVersion: "4"})
		mustCreate(t, s, pod("d", nil))
		expect(t, latest, "ADDED d 5")
		if err := s.Compact("2"); err == nil {
			t.Error("compacted at an older version than before")
		}
	})
}

func TestChangesOfTheSelectedLabelsAreAddsAndDeletes(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		w := open(t, pods, metav1.ListOptions{ResourceVersion: "1", LabelSelector: "app=x"})
		mustCreate(t, s, pod("a", map[string]string{"app": "y"}))
		for _, app := range []string{"x", "x", "z", "y"} {
			p := pod("a", map[string]string{"app": app})
			p.Spec.NodeName = "n" + string(s.Version())
			if _, err := s.Update(p); err != nil {
				t.Fatal(err)
			}
		}
		mustCreate(t, s, pod("b", map[string]string{"app": "x"}))
		expect(t, w, "ADDED a 3", "MODIFIED a 4", "DELETED a 5", "ADDED b 7")
	})
}

func TestRestoreGoesBackAndCutsWatches(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		v := mustCreate(t, s, pod("a", nil))
		before, _ := s.Get(podsGVR, "default/a")
		w := open(t, pods, metav1.ListOptions{ResourceVersion: string(v)})
		mustCreate(t, s, pod("b", nil))
		expect(t, w, "ADDED b 3")
		s.Delete(pod("a", nil))
		if err := s.Restore(v); err != nil {
			t.Fatal(err)
		}
		if got := events(t, w, 2); got[len(got)-1] != "end" {
			t.Errorf("the watch stays open: %v", got)
		}
		if diff := cmp.Diff(map[object.Key]object.Version{"default/a": v}, s.Versions(podsGVR)); diff != "" {
			t.Error(diff)
		}
		after, _ := s.Get(podsGVR, "default/a")
		if after.GetUID() != before.GetUID() {
			t.Error("a restored object has another UID")
		}
		if again := mustCreate(t, s, pod("b", nil)); again != "3" {
			t.Errorf("the first write after a restore has version %s, want 3 again", again)
		}
		if err := s.Restore("99"); err == nil {
			t.Error("restored a version that does not exist yet")
		}
	})
}

func TestStalledStreamsStayOpenAndSilent(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		second := int64(1)
		w := open(t, pods, metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: &second})
		s.Stall()
		mustCreate(t, s, pod("a", nil))
		synctest.Wait()
		select {
		case e := <-w.ResultChan():
			t.Errorf("a stalled watch sent %v", e)
		default:
		}
		if s.OpenWatches() != 1 {
			t.Errorf("%d watches are open", s.OpenWatches())
		}
		s.Resume()
		expect(t, w, "ADDED a 2", "end")
	})
}

func TestObjectWithFinalizersIsDeletedWhenTheyAreCleared(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		p := pod("a", nil)
		p.Finalizers = []string{"example.com/hold"}
		mustCreate(t, s, p)
		w := open(t, pods, metav1.ListOptions{ResourceVersion: string(s.Version())})
		if err := pods.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		held, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || held.DeletionTimestamp == nil {
			t.Fatalf("held object: %v", err)
		}
		held.Finalizers = nil
		if _, err := pods.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "MODIFIED a 3", "DELETED a 4")
	})
}

func TestUpdateThatChangesNothingWritesNothing(t *testing.T) {
	s := informertest.NewServer()
	v := mustCreate(t, s, pod("a", nil))
	again, err := s.Update(pod("a", nil))
	if err != nil || again != v || s.Version() != v {
		t.Errorf("version %s, %v, then the server at %s; want %s", again, err, s.Version(), v)
	}
}

func TestDeleteCollectionUsesSelectors(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		mustCreate(t, s, pod("a", map[string]string{"app": "x"}), pod("b", nil))
		if err := pods.DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "app=x"}); err != nil {
			t.Fatal(err)
		}
		if l, err := s.List(podsGVR); err != nil || len(l) != 1 || l[0].GetName() != "b" {
			t.Errorf("left: %v, %v", l, err)
		}
	})
}

func TestBadInputGetsAnError(t *testing.T) {
	s := informertest.NewServer()
	mustCreate(t, s, pod("a", nil))
	var nilPod *corev1.Pod
	cases := map[string]error{}
	_, cases["nil"] = s.Create(nil)
	_, cases["it is nil"] = s.Create(nilPod)
	_, cases["no name"] = s.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x"}})
	_, cases["has no namespace"] = s.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	_, cases["has a namespace"] = s.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "y"}})
	_, cases["register it first"] = s.Create(widget("w", 1))
	_, cases["already exists"] = s.Create(pod("a", nil))
	_, cases["not found"] = s.Update(pod("z", nil))
	_, cases[`"z" not found`] = s.Delete(pod("z", nil))
	_, cases["not served"] = s.Get(widgetsGVR, "x")
	_, cases["listing"] = s.List(widgetsGVR)
	cases["served already"] = s.Register(podsGVR, "Pod", true)
	cases["must be given"] = s.Register(podsGVR, "", true)
	cases["unregistering"] = s.Unregister(widgetsGVR)
	cases["not a version"] = s.Compact("x")
	cases["newest version is 2"] = s.Restore("3")
	for want, err := range cases {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if keys := s.Versions(podsGVR); len(keys) != 1 || s.Version() != "2" {
		t.Errorf("bad input changed the server: %v at %s", keys, s.Version())
	}
}

func TestGeneratedNamesDiffer(t *testing.T) {
	s := informertest.NewServer()
	for range 3 {
		mustCreate(t, s, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "web-"}})
	}
	l, err := s.List(podsGVR)
	if err != nil || len(l) != 3 ||
		slices.ContainsFunc(l, func(u *unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), "web-") }) {
		t.Errorf("generated: %v, %v", l, err)
	}
}
