package informertest_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/mirador-k8s/mirador/informertest"
)

func TestFaultAnswersWithTheStatusOfItsCode(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		for code, is := range map[int]func(error) bool{
			401: apierrors.IsUnauthorized, 403: apierrors.IsForbidden, 404: apierrors.IsNotFound,
			410: apierrors.IsResourceExpired,
			429: apierrors.IsTooManyRequests, 500: apierrors.IsInternalError, 503: apierrors.IsServiceUnavailable,
			504: apierrors.IsTimeout,
		} {
			s.Inject(informertest.Fault{Verbs: []string{"list"}, Resource: "pods", Times: 1, Code: code})
			if _, err := pods.List(t.Context(), metav1.ListOptions{}); !is(err) {
				t.Errorf("%d: %v", code, err)
			}
			if _, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("%d failed more than one request: %v", code, err)
			}
		}
		// The client retries after the second that this status names, so the fault stays.
		remove := s.Inject(informertest.Fault{Status: informertest.TooLargeVersion(9, 1)})
		if _, err := pods.Watch(t.Context(), metav1.ListOptions{}); !apierrors.HasStatusCause(err,
			metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("too large version: %v", err)
		}
		remove()
		s.Inject(informertest.Fault{Times: 1, Code: 410, AsEvent: true})
		expect(t, open(t, pods, metav1.ListOptions{ResourceVersion: "1"}), "ERROR 410 Expired", "end")
		s.Inject(informertest.Fault{Times: 1, RefuseInitialEvents: true})
		if _, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("refusing initial events failed a list: %v", err)
		}
		if _, err := pods.Watch(t.Context(), watchList()); !apierrors.IsInvalid(err) {
			t.Errorf("refused initial events: %v", err)
		}
	})
}

func TestRetryAfterIsSentAndHonouredByClientGo(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		s.Inject(informertest.Fault{Times: 1, Code: 429, RetryAfter: 7 * time.Second})
		start := time.Now()
		if _, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("retried after %v", took)
		}
		log := s.Requests()
		if len(log) != 2 || log[0].Code != 429 || log[1].Code != 200 || log[1].Verb != "list" ||
			log[1].Namespace != "default" {
			t.Errorf("log: %+v", log)
		}
	})
}

func TestFaultsChangeWhatAWatchSends(t *testing.T) {
	for name, c := range map[string]struct {
		fault informertest.Fault
		want  []string
	}{
		"close at once":    {informertest.Fault{CloseAtOnce: true}, []string{"end"}},
		"cut after frames": {informertest.Fault{CutAfterFrames: 1}, []string{"ADDED a 2", "end"}},
		"garbage frame":    {informertest.Fault{GarbageFrame: 2}, []string{"ADDED a 2", "ERROR 500 InternalError"}},
		"duplicate frame": {informertest.Fault{DuplicateFrame: 1},
			[]string{"ADDED a 2", "ADDED a 2", "ADDED b 3", "BOOKMARK  3 initial end"}},
		"dropped frame":   {informertest.Fault{DropFrame: 1}, []string{"ADDED b 3", "BOOKMARK  3 initial end"}},
		"undecodable":     {informertest.Fault{Undecodable: 2}, []string{"ADDED a 2", "ERROR 500 InternalError"}},
		"no bookmarks":    {informertest.Fault{NoBookmarks: true}, []string{"ADDED a 2", "ADDED b 3", "ADDED c 4"}},
		"stale":           {informertest.Fault{StaleAt: "2"}, []string{"ADDED a 2", "BOOKMARK  2 initial end", "ADDED b 3"}},
		"cut after bytes": {informertest.Fault{CutAfterBytes: 20}, []string{"end"}},
	} {
		t.Run(name, func(t *testing.T) {
			onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
				mustCreate(t, s, pod("a", nil), pod("b", nil))
				c.fault.Verbs, c.fault.Times = []string{"watch"}, 1
				s.Inject(c.fault)
				w := open(t, pods, watchList())
				if name == "no bookmarks" {
					synctest.Wait()
					s.Bookmark(podsGVR)
					mustCreate(t, s, pod("c", nil))
				}
				expect(t, w, c.want...)
			})
		})
	}
}

func TestFaultsMakeAListFail(t *testing.T) {
	for name, c := range map[string]struct {
		fault informertest.Fault
		want  string
	}{
		"refused":         {informertest.Fault{Refuse: true}, "EOF"},
		"cut after bytes": {informertest.Fault{CutAfterBytes: 100}, "unexpected EOF"},
		"garbage":         {informertest.Fault{GarbageFrame: 1}, ""},
		"undecodable":     {informertest.Fault{Undecodable: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
				mustCreate(t, s, pod("a", nil))
				// The client repeats a GET on a broken connection, so the fault stays.
				remove := s.Inject(c.fault)
				if _, err := pods.List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("list: %v, want %q in the error", err, c.want)
				}
				remove()
				if l, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || names(l) != "a" {
					t.Errorf("after the fault was removed: %v", err)
				}
			})
		})
	}
}

func TestStaleListHasAnOlderVersion(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		v := mustCreate(t, s, pod("a", nil))
		mustCreate(t, s, pod("b", nil))
		s.Inject(informertest.Fault{StaleAt: v})
		l, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || names(l) != "a" || l.ResourceVersion != string(v) {
			t.Errorf("list %q at %s, %v", names(l), l.ResourceVersion, err)
		}
		if _, err := pods.Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
	})
}

func TestDelayUsesFakeTimeAndEndsWithTheClient(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		s.Inject(informertest.Fault{Delay: time.Hour,
			Match: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/pods") }})
		start := time.Now()
		if _, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || time.Since(start) != time.Hour {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		start = time.Now()
		seconds := int64(5)
		if _, err := pods.List(t.Context(), metav1.ListOptions{TimeoutSeconds: &seconds}); err == nil ||
			time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestCutWatchesBreaksOnlyOpenWatches(t *testing.T) {
	onPods(t, func(t *testing.T, s *informertest.Server, pods typedcorev1.PodInterface) {
		w := open(t, pods, metav1.ListOptions{ResourceVersion: "1"})
		s.CutWatches()
		expect(t, w, "end")
		synctest.Wait()
		if n := s.OpenWatches(); n != 0 {
			t.Errorf("%d watches are open after all were cut", n)
		}
		again := open(t, pods, metav1.ListOptions{ResourceVersion: "1"})
		mustCreate(t, s, pod("a", nil))
		expect(t, again, "ADDED a 2")
	})
}
