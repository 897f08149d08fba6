package feed

import (
	"context"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/mirador-k8s/mirador/dev/testpods"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
	"github.com/mirador-k8s/mirador/source/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClientGoReadsTheStream(t *testing.T) {
	client, err := kubernetes.NewForConfig(Generated(30, 7).Config())
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	w, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		w.Stop()
		for range w.ResultChan() { // until its goroutine has ended
		}
	}()
	set := testpods.New(Seed, 7)
	want := map[string]string{}
	for i := range 30 {
		want[set.Pod(i).Name] = string(set.Pod(i).UID)
	}
	for e := range w.ResultChan() {
		p := e.Object.(*corev1.Pod)
		if e.Type == watch.Bookmark {
			if p.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("the bookmark has the annotations %v", p.Annotations)
			}
			break
		}
		if want[p.Name] != string(p.UID) {
			t.Errorf("pod %s of uid %s was not to come, or not again", p.Name, p.UID)
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("%d pods did not come", len(want))
	}
}

func TestOurSourceReadsTheFilesInBothForms(t *testing.T) {
	dir := t.TempDir()
	for _, form := range []Form{Protobuf, JSON} {
		if err := WriteFile(dir, form, 20); err != nil {
			t.Fatal(err)
		}
	}
	cfg := FromFiles(dir, 20).Config()
	for _, opts := range []*kube.Options{nil, {ForceJSON: true}} {
		src, err := kube.Typed[*corev1.Pod](cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		if n := readState(t, src); n != 20 {
			t.Errorf("read %d pods, want 20", n)
		}
	}
}

func readState(t *testing.T, src source.Source[*corev1.Pod]) (pods int) {
	t.Helper()
	w, err := src.Watch(t.Context(), source.WatchOptions{InitialState: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		changes, err := w.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.Type == object.Bookmark {
				return pods
			}
			pods++
		}
	}
}

func TestChangesComeAfterTheState(t *testing.T) {
	set := testpods.New(Seed, 2)
	wire, err := AppendChange(nil, Protobuf, set.Changed(set.Pod(1), 0))
	if err != nil {
		t.Fatal(err)
	}
	after := make(chan []byte, 1)
	after <- wire
	server := Generated(3, 2)
	server.After = after
	src, err := kube.Typed[*corev1.Pod](server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := src.Watch(t.Context(), source.WatchOptions{InitialState: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var versions []object.Version // of three pods, the end of the state and the change
	var last source.Change[*corev1.Pod]
	for len(versions) < 5 {
		changes, err := w.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			versions, last = append(versions, c.Item.Version), c
		}
	}
	if last.Type != object.Updated || last.Item.Key != object.Key(set.Key(1)) || !versions[2].Before(versions[3]) ||
		!versions[3].Before(versions[4]) {
		t.Errorf("the last of %v is a %v of %s", versions, last.Type, last.Item.Key)
	}
}

func TestPodsOfOneWorkloadComeTogether(t *testing.T) {
	next := listed(7, 3)
	var got []int
	for i, ok := next(); ok; i, ok = next() {
		got = append(got, i)
	}
	want := []int{0, 3, 6, 1, 4, 2, 5}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	if _, more := listed(0, 3)(); more {
		t.Error("no pods are still some")
	}
	if i, ok := listed(2, 5)(); !ok || i != 0 {
		t.Errorf("fewer pods than templates begin with %d, %v", i, ok)
	}
}

func TestASilentBodyEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &body{ctx: ctx, closed: make(chan struct{}), read: true}
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := b.Read(make([]byte, 1)); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	b = &body{ctx: t.Context(), closed: make(chan struct{}), read: true}
	if b.Close(); b.Close() != nil {
		t.Error("closing twice fails")
	}
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v", err)
	}
}
