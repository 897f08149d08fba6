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
	two, ofTwo := table.Share(decode("second"), true)
	three, ofThree := table.Share(decode("third"), true)

	second, third := two.(*job), three.(*job)
	fmt.Println(third.Name, third.Args)
	fmt.Println("one slice:", unsafe.SliceData(second.Args) == unsafe.SliceData(third.Args))
	fmt.Println("differ at", share.Diff(second, third))

	table.Release(ofTwo)
	table.Release(ofThree)
	fmt.Println("entries:", table.Stats().Entries)
	// Output:
	// third [--quiet --retry=3]
	// one slice: true
	// differ at Name
	// entries: 0
}
