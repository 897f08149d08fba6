package fleet

import (
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testpods"
)

func TestSimilarPodsAreEstimatedSmallAndNoiseAtItsSize(t *testing.T) {
	set := testpods.New(1, 50)
	pods := sizeEstimate{}
	for i := range 1000 {
		b, err := json.Marshal(set.Pod(i))
		if err != nil {
			t.Fatal(err)
		}
		pods.add(len(b), b)
	}
	if got := pods.estimate(); got > pods.raw/2 {
		t.Errorf("the estimate of %d bytes of pods is %d", pods.raw, got)
	}
	t.Logf("%d bytes of pods are said to take %d", pods.raw, pods.estimate())
	noise := sizeEstimate{}
	for range 500 {
		b := make([]byte, 8000)
		rand.Read(b) // it never fails
		noise.add(len(b), b)
	}
	if got := noise.estimate(); got < noise.raw*95/100 {
		t.Errorf("the estimate of %d bytes of noise is %d", noise.raw, got)
	}
	unknown := sizeEstimate{}
	for range 4000 {
		unknown.add(8000, nil)
	}
	if got := unknown.estimate(); got != unknown.raw {
		t.Errorf("the estimate of %d unknown bytes is %d", unknown.raw, got)
	}
}
