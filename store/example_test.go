package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

type pod struct{ App, Node string }

func byApp(p pod) ([]string, error) { return []string{p.App}, nil }

func entry(key object.Key, version object.Version, p pod) object.Item[pod] {
	return object.Item[pod]{Key: key, Version: version, Size: 100, Value: p}
}

func Example() {
	w, err := store.New(store.Options[pod]{
		Indexes: map[string]store.IndexFunc[pod]{"app": byApp},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := w.Reader()

	w.Begin()
	w.Put(entry("web/mysql-0", "1", pod{"mysql", "node-1"}))
	w.Put(entry("web/nginx-0", "2", pod{"nginx", "node-1"}))
	w.Put(entry("web/nginx-1", "3", pod{"nginx", "node-2"}))
	w.Commit()

	before := r.Snapshot()

	w.Begin()
	w.Delete("web/nginx-0", "4")
	w.Commit()

	for _, s := range []*store.Snapshot[pod]{before, r.Snapshot()} {
		fmt.Println("version", s.Version())
		for key, p := range s.Ordered() {
			fmt.Println(" ", key, "on", p.Node)
		}
		fmt.Println("  nginx:", len(slices.Collect(s.ByIndex("app", "nginx"))))
	}
	// Output:
	// version 3
	//   web/mysql-0 on node-1
	//   web/nginx-0 on node-1
	//   web/nginx-1 on node-2
	//   nginx: 2
	// version 4
	//   web/mysql-0 on node-1
	//   web/nginx-1 on node-2
	//   nginx: 1
}

func ExampleWriter_CommitReplace() {
	w, _ := store.New(store.Options[pod]{})
	w.Begin()
	w.Put(entry("a", "1", pod{App: "old"}))
	w.Put(entry("b", "2", pod{App: "old"}))
	w.Put(entry("c", "3", pod{App: "old"}))
	w.Commit()

	// A list has a, unchanged, c in a later version, and d.
	w.BeginReplace()
	fmt.Println("a is what the store has:", w.Seen("a", "1", ""))
	fmt.Println("c is what the store has:", w.Seen("c", "8", ""))
	w.Stage(entry("c", "8", pod{App: "new"}))
	w.Stage(entry("d", "7", pod{App: "new"}))
	w.CommitReplace("9", func(old, now *store.Entry[pod]) {
		switch {
		case now == nil:
			fmt.Println("deleted", old.Key)
		case old == nil:
			fmt.Println("added", now.Key)
		default:
			fmt.Println("updated", now.Key, old.Version, "to", now.Version)
		}
	})
	// Output:
	// a is what the store has: true
	// c is what the store has: false
	// deleted b
	// updated c 3 to 8
	// added d
}

func ExampleReader_Since() {
	w, _ := store.New(store.Options[pod]{LogBytes: 1 << 20})
	w.Begin()
	w.Put(entry("a", "5", pod{Node: "node-1"}))
	w.Commit()
	w.Begin()
	w.Put(entry("a", "6", pod{Node: "node-2"}))
	w.Delete("a", "7")
	w.Commit()

	changes, err := w.Reader().Since("5")
	if err != nil {
		fmt.Println(err)
		return
	}
	for c := range changes {
		fmt.Println(c.Version, c.Key, "is there:", c.New != nil)
	}
	_, err = w.Reader().Since("4")
	fmt.Println(errors.Is(err, store.ErrGone))
	// Output:
	// 6 a is there: true
	// 7 a is there: false
	// true
}

func ExampleSnapshot_Page() {
	w, _ := store.New(store.Options[pod]{})
	w.Begin()
	for _, key := range []object.Key{"e", "b", "d", "a", "c"} {
		w.Put(entry(key, "", pod{}))
	}
	w.Commit()

	s := w.Reader().Snapshot() // all pages are of this moment
	for after, more := object.Key(""), true; more; {
		var page []*store.Entry[pod]
		page, more = s.Page(after, 2)
		for _, e := range page {
			fmt.Print(e.Key, " ")
			after = e.Key
		}
		fmt.Println(more)
	}
	// Output:
	// a b true
	// c d true
	// e false
}

func ExampleIndex() {
	w, _ := store.New(store.Options[pod]{Indexes: map[string]store.IndexFunc[pod]{"app": byApp}})
	w.Begin()
	w.Put(entry("x", "", pod{App: "nginx"}))
	w.Put(entry("y", "", pod{App: "mysql"}))
	w.Put(entry("z", "", pod{App: "nginx"}))
	w.Commit()

	s := w.Reader().Snapshot()
	app, err := s.Index("app")
	if err != nil {
		fmt.Println(err)
		return
	}
	for value := range app.Values() {
		fmt.Println(value, app.Len(value))
	}
	_, err = s.Index("node")
	fmt.Println(err)
	// Output:
	// mysql 1
	// nginx 2
	// read index "node": no such index; known are app
}

// The packed layout needs a codec. The sources of source/kube have one.
func ExampleOptions_layout() {
	w, err := store.New(store.Options[pod]{
		Layout:  store.Packed,
		Indexes: map[string]store.IndexFunc[pod]{"app": byApp},
		Codec: &object.Codec[pod]{
			Encode: func(dst []byte, p pod) ([]byte, error) {
				encoded, err := json.Marshal(p)
				return append(dst, encoded...), err
			},
			Decode: func(encoded []byte) (p pod, err error) {
				err = json.Unmarshal(encoded, &p)
				return p, err
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w.Begin()
	w.Put(entry("web/a", "1", pod{App: "shop", Node: "n1"}))
	w.Commit()
	for p := range w.Reader().Snapshot().ByIndex("app", "shop") {
		fmt.Println(p.App, "on", p.Node)
	}
	e, _ := w.Reader().Entry("web/a")
	encoded, ok := e.AppendEncoded(nil)
	fmt.Println(string(encoded), ok)
	// Output:
	// shop on n1
	// {"App":"shop","Node":"n1"} true
}
