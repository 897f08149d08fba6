package cases

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/testpods"
)

// latest is a version that no pod has yet when it is listed.
const latest = "999000000"

// realPods returns n realistic pods.
func realPods(n int) ([]*corev1.Pod, *testpods.Set) {
	set := testpods.New(feed.Seed, testpods.DefaultTemplates)
	return podsOf(set, n), set
}

// podsOf returns the first n pods of a set.
func podsOf(set *testpods.Set, n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	parallel(n, func(i int) { pods[i] = set.Pod(i) })
	return pods
}

// parallel calls f for each number below n, on all cores.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}

// spread distributes pods over a number of namespaces, in turn.
func spread(pods []*corev1.Pod, namespaces int) {
	for i, p := range pods {
		p.Namespace = "ns-" + strconv.Itoa(i%namespaces)
	}
}

// copies returns deep copies of the pods.
func copies(pods []*corev1.Pod) []*corev1.Pod {
	all := make([]*corev1.Pod, len(pods))
	parallel(len(pods), func(i int) { all[i] = pods[i].DeepCopy() })
	return all
}

// smallPods returns pods with little more than metadata, for cases in which the size of an object does not matter.
func smallPods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("ns-%d", i%100), Name: fmt.Sprintf("pod-%07d", i),
				UID: types.UID(fmt.Sprintf("uid-%07d", i)), ResourceVersion: strconv.Itoa(1000 + i),
				Labels: map[string]string{"app": fmt.Sprintf("app-%d", i%200)},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
	}
	return pods
}

// changes returns n changes of pods, each pod in turn and each change based on the one before. number returns which
// change an object is.
func changes(set *testpods.Set, pods []*corev1.Pod, n int) []*corev1.Pod {
	all := make([]*corev1.Pod, n)
	parallel(min(n, len(pods)), func(at int) {
		last := pods[at]
		for i := at; i < n; i += len(pods) {
			last = set.Changed(last, i)
			all[i] = last
		}
	})
	return all
}

// firstChange is the version of change 0.
const firstChange = 1_000_000_000

// number returns which change an object is.
func number(p *corev1.Pod) int {
	v, err := strconv.Atoi(p.ResourceVersion)
	if err != nil {
		return -1
	}
	return v - firstChange
}
