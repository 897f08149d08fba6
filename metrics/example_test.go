package metrics_test

import (
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/metrics"
	"github.com/mirador-k8s/mirador/source/kube"
)

// The collector exports the informers that the factory has at the time of a scrape.
func ExampleNewCollector() {
	f, err := factory.New(&rest.Config{Host: "https://cluster.example"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	collector, err := metrics.NewCollector(f.Health)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(testutil.CollectAndCount(collector, "mirador_informer_objects"))
	pods, err := factory.Of[*corev1.Pod](f, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(testutil.CollectAndCount(collector, "mirador_informer_objects"))
	pods.Release()
	fmt.Println(testutil.CollectAndCount(collector, "mirador_informer_objects"))
	// Output:
	// 0
	// 1
	// 0
}

func Example() {
	src, err := kube.Typed[*corev1.Pod](&rest.Config{Host: "https://cluster.example"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	pods, err := informer.New(src, nil)
	if err != nil {
		log.Fatal(err)
	}
	collector, err := metrics.NewCollector(metrics.Of(pods))
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "mirador_informer_state" {
			for _, m := range f.GetMetric() {
				fmt.Println(m.GetLabel()[3].GetValue(), m.GetGauge().GetValue())
			}
		}
	}
	// Output:
	// listing 0
	// not served 0
	// polling 0
	// retrying 0
	// starting 1
	// stopped 0
	// streaming 0
}
