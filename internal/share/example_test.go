package share_test

import (
	"fmt"
	"unsafe"

	"github.com/mirador-k8s/mirador/internal/share"
)

type job struct {
	Name string
	Args []string
}

func Example() {
	decode := func(name string) *job { return &job{Name: name, Args: []string{"--quiet", "--retry=3"}} }

	table := share.NewTable()
	table.Share(decode("first"), true)
	second := table.Share(decode("second"), true).(*job)
	third := table.Share(decode("third"), true).(*job)

	fmt.Println(third.Name, third.Args)
	fmt.Println("one slice:", unsafe.SliceData(second.Args) == unsafe.SliceData(third.Args))
	fmt.Println("differ at", share.Diff(second, third))

	table.Release(second)
	table.Release(third)
	fmt.Println("entries:", table.Stats().Entries)
	// Output:
	// third [--quiet --retry=3]
	// one slice: true
	// differ at Name
	// entries: 0
}
