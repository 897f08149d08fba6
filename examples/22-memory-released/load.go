// Package memoryreleased is about the second of the two pitfalls of the originals: "an informer that was stopped by its
// signal does not free the cache it has filled; how is that cleared without a restart?"
//
// It fills a namespace with 20 MB of ConfigMaps, mirrors them, stops, and measures the heap each time. The ConfigMaps
// are deleted at the end.
package memoryreleased

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	objects = 40
	size    = 500_000
	label   = "mirador-example=memory-released"
)

// load creates 20 MB of ConfigMaps; the function that it returns deletes them.
func load(ctx context.Context, client kubernetes.Interface, namespace string) (unload func() error, err error) {
	configMaps := client.CoreV1().ConfigMaps(namespace)
	unload = func() error {
		return configMaps.DeleteCollection(context.WithoutCancel(ctx), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: label})
	}
	key, value, _ := strings.Cut(label, "=")
	for i := range objects {
		name := fmt.Sprintf("load-%03d", i)
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: value}},
			Data:       map[string]string{"text": strings.Repeat(name+"\n", size/(len(name)+1))},
		}, metav1.CreateOptions{})
		if err != nil {
			return unload, err
		}
	}
	return unload, nil
}

// meter measures how much the heap has grown since the start.
type meter struct {
	out  io.Writer
	from float64
}

func newMeter(out io.Writer) *meter { return &meter{out: out, from: heap()} }

// show prints how much the heap has grown, rounded to 10 MB, since the heap of a program that talks to a server is
// never exactly the same twice.
func (m *meter) show(moment string, stored int) {
	grown := heap() - m.from
	fmt.Fprintf(m.out, "%s: %d objects, about %.0f MB\n", moment, stored, math.Abs(math.Round(grown/10e6)*10))
}

// heap returns the size of the reachable heap.
func heap() float64 {
	runtime.GC()
	runtime.GC() // objects in a sync.Pool survive the first collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
