package reflector_test

import (
	"context"
	"fmt"
	"io"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// Step runs a reflector one operation at a time.
func ExampleReflector_Step() {
	src := &script{
		lists:   []reply{{version: "7", items: []string{"a@3", "b@5"}, end: io.EOF}},
		watches: []reply{{changes: []source.Change[string]{put("a", "8")}}},
	}
	r, err := reflector.New(reflector.Options[string]{Source: src, Sink: printer{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	for range 6 {
		wait, err := r.Step(context.Background())
		fmt.Println("step:", r.Health().State, wait, err)
	}
	// Output:
	// step: listing 0s <nil>
	// ReplaceBegin
	// step: listing 0s <nil>
	// Replaced a
	// Replaced b
	// step: listing 0s <nil>
	// ReplaceEnd
	// step: listing 0s <nil>
	// step: streaming 0s <nil>
	// Updated a
	// step: streaming 0s <nil>
}

type printer struct{}

func (printer) Push(_ context.Context, deltas []object.Delta[string]) error {
	for _, d := range deltas {
		if d.Item.Key == "" {
			fmt.Println(d.Type)
		} else {
			fmt.Println(d.Type, d.Item.Key)
		}
	}
	return nil
}
