package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
)

// podsOf returns a list of pods with the given sizes.
func podsOf(sizes ...int) *listing {
	l := &listing{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, render: &renderer{form: whole}}
	for i, size := range sizes {
		name := fmt.Sprintf("pod-%d", i)
		b := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name +
			`","namespace":"a"},"status":{"message":"`)
		b = append(b, strings.Repeat("x", max(0, size-len(b)-3))...)
		b = append(b, `"}}`...)
		e := storedEntry(object.Item[*fleet.Object]{Key: object.NewKey("a", name), Version: "1", Size: len(b),
			Value: &fleet.Object{Bytes: b}})
		l.items = append(l.items, item{"eu", e, "1"})
	}
	var err error
	if l.work, err = newWorkGate(3).begin(context.Background(), "one"); err != nil {
		panic(err) // cannot fail: the gate is empty
	}
	l.memory = newQuota("bytes of memory", requestMemory).open("one")
	if l.streams = !l.buffered(); l.streams {
		l.work.leave()
	}
	return l
}

func repeated(n, size int) (sizes []int) {
	for range n {
		sizes = append(sizes, size)
	}
	return sizes
}

// TestListsOfAnySizeAreComplete writes lists of one piece, of many, and with objects that are larger than a
// piece.
func TestListsOfAnySizeAreComplete(t *testing.T) {
	for name, sizes := range map[string][]int{
		"none":            nil,
		"one":             {200},
		"few":             repeated(3, 10<<10),
		"many small":      repeated(1000, 150),
		"many":            repeated(150, 10<<10),
		"one that is big": {200, 3 * pieceBytes, 200},
		"big":             repeated(5, pieceBytes+1),
	} {
		for _, all := range []bool{false, true} {
			l := podsOf(sizes...)
			if all {
				l.render.fleet = &fleetShape{}
			}
			var b bytes.Buffer
			if err := l.writeTo(&b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got struct {
				Kind  string
				Items []struct {
					Kind     string
					Metadata struct{ Name, Namespace string }
					Status   struct{ Message string }
				}
			}
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.Kind != "PodList" || len(got.Items) != len(sizes) {
				t.Fatalf("%s: a %s with %d of %d items", name, got.Kind, len(got.Items), len(sizes))
			}
			namespace := "a"
			if all {
				namespace = "eu.a"
			}
			for i, it := range got.Items {
				if it.Kind != "" || it.Metadata.Name != fmt.Sprintf("pod-%d", i) || it.Metadata.Namespace != namespace ||
					len(it.Status.Message) < sizes[i]-120 {
					t.Fatalf("%s: item %d is %s/%s of %d bytes, asked for %d", name, i, it.Metadata.Namespace, it.Metadata.Name,
						len(it.Status.Message), sizes[i])
				}
			}
		}
	}
}

// TestBudget_ListAllocatesLittle holds what a list allocates: what it is made in is used again by the next. That
// is 2 KB, and 600 under the race detector, which loses a quarter of the buffers on purpose. With buffers of its own
// a list took 4,900.
func TestBudget_ListAllocatesLittle(t *testing.T) {
	l := podsOf(repeated(100, 10<<10)...)
	const lists = 50
	var before, after runtime.MemStats
	for range 2 { // the first one allocates the buffers
		runtime.ReadMemStats(&before)
		for range lists {
			if err := l.writeTo(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
	}
	each := (after.TotalAlloc - before.TotalAlloc) / lists
	t.Logf("%d KB for a list of 1,000", each>>10)
	if each > 1200<<10 {
		t.Errorf("a list of 1,000 KB allocates %d KB, at most 1,200", each>>10)
	}
}
