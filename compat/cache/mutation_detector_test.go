package cache

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoeverWritesToACachedObjectIsFound(t *testing.T) {
	var found string
	d := newDetector("pods")
	d.fail = func(message string) { found = message }
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	d.AddObject(p)
	d.AddObject("no object")
	d.AddObject(DeletedFinalStateUnknown{Key: "b"})
	d.compare()
	if found != "" {
		t.Errorf("nobody wrote, and yet: %s", found)
	}
	p.Labels = map[string]string{"written": "yes"}
	d.compare()
	if !strings.Contains(found, "pods") || !strings.Contains(found, "written") {
		t.Errorf("found %q", found)
	}
}

func TestObjectsAreWatchedOverForTwoToFourMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDetector("pods")
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(stop)
		}()
		d.AddObject(&corev1.Pod{})
		held := func() int {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.recent) + len(d.older)
		}
		time.Sleep(2 * time.Minute)
		if held() != 1 {
			t.Error("forgotten too early")
		}
		time.Sleep(2*time.Minute + 5*time.Second)
		if held() != 0 {
			t.Error("never forgotten")
		}
		close(stop)
		<-ended
	})
}

func TestTheDetectorIsOffUnlessAskedFor(t *testing.T) {
	if _, off := NewCacheMutationDetector("pods").(noDetector); off == detectMutations {
		t.Errorf("off is %v, and the environment says %v", off, detectMutations)
	}
}
