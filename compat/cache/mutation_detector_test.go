package cache

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/store"
)

func TestDetectorFindsAWriteToACachedObject(t *testing.T) {
	var found string
	d := newDetector("pods")
	d.fail = func(message string) { found = message }
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	d.AddObject(p)
	d.AddObject("no object")
	d.AddObject(DeletedFinalStateUnknown{Key: "b"})
	d.compare()
	if found != "" {
		t.Errorf("reported without a write: %s", found)
	}
	p.Labels = map[string]string{"written": "yes"}
	d.compare()
	if !strings.Contains(found, "pods") || !strings.Contains(found, "written") {
		t.Errorf("reported %q, want the name of the cache and of the changed field", found)
	}
}

func TestDetectorTracksAnObjectForTwoToFourMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDetector("pods")
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(stop)
		}()
		d.AddObject(&corev1.Pod{})
		tracked := func() int {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.recent) + len(d.older)
		}
		time.Sleep(2 * time.Minute)
		if tracked() != 1 {
			t.Error("the object is not tracked after two minutes")
		}
		time.Sleep(2*time.Minute + 5*time.Second)
		if tracked() != 0 {
			t.Error("the object is still tracked after four minutes")
		}
		close(stop)
		<-ended
	})
}

func TestDetectorIsOffByDefault(t *testing.T) {
	if _, off := NewCacheMutationDetector("pods").(noDetector); off == detectMutations {
		t.Errorf("off is %v, and KUBE_CACHE_MUTATION_DETECTOR is %v", off, detectMutations)
	}
}

func TestWriteOfAHandlerIsReportedWithItsName(t *testing.T) {
	was, end := detectMutations, mutated
	defer func() { detectMutations, mutated = was, end }()
	synctest.Test(t, func(t *testing.T) {
		found := make(chan store.Written, 10)
		detectMutations, mutated = true, func(_ string, w store.Written) { found <- w }
		lw := &ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{
					{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", Labels: map[string]string{"x": "y"}}}}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface,
				error) {
				return watch.NewFake(), nil
			},
		}
		s := NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		_, err := s.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj any) { obj.(*corev1.Pod).Labels["x"] = "z" }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.RunWithContext(ctx) }()
		w := <-found
		if w.Key != "a" || w.Path != `ObjectMeta.Labels["x"]` || len(w.By) != 1 ||
			!strings.Contains(w.By[0], "ResourceEventHandlerFuncs") {
			t.Errorf("reported %+v", w)
		}
		cancel()
		<-ended
	})
}
