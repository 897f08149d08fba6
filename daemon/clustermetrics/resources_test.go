package clustermetrics

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mirador-k8s/mirador/informer"
)

func TestResourcesBeyondTheLargestAreAddedUp(t *testing.T) {
	totals := resourceTotals{}
	for i := range namedResources + 50 {
		h := informer.Health{Objects: 1}
		h.Layout.Bytes = int64(i)
		totals.add(fmt.Sprintf("r%03d", i), &h)
	}
	to := make(chan prometheus.Metric, 3*(namedResources+2))
	totals.send(to)
	close(to)
	objectsOf := map[string]float64{}
	for m := range to {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		if m.Desc() == resourceObjects {
			objectsOf[out.GetLabel()[0].GetValue()] = out.GetGauge().GetValue()
		}
	}
	if len(objectsOf) != namedResources+1 || objectsOf[otherResources] != 50 || objectsOf["r249"] != 1 {
		t.Errorf("%d resources have series, and the others %v objects", len(objectsOf), objectsOf[otherResources])
	}
	if _, ok := objectsOf["r049"]; ok {
		t.Error("a small resource has a series of its own")
	}
}
