package store

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func TestAllocationsStayWithinTheirBudget(t *testing.T) {
	colors := [][]string{{"c0"}, {"c1"}, {"c2"}, {"c3"}}
	w, err := New(Options[*thing]{Indexes: map[string]IndexFunc[*thing]{
		"color": func(o *thing) ([]string, error) { return colors[o.Tags%4], nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	var entries []object.Item[*thing]
	var versions []object.Version
	for v := range 2000 {
		versions = append(versions, object.Version(strconv.Itoa(2+v)))
	}
	w.Begin()
	for i := range 2000 {
		e := object.Item[*thing]{Key: object.Key(fmt.Sprint("ns/k", i)), Version: "1", Value: &thing{Tags: i}}
		entries = append(entries, e)
		w.Put(e)
	}
	w.Commit()
	r := w.Reader()
	s := r.Snapshot()
	n, i := 0, 0
	for _, c := range []struct {
		what   string
		budget float64
		do     func()
	}{
		{"Reader.Get", 0, func() { r.Get("ns/k77") }},
		{"Reader.Get of nothing", 0, func() { r.Get("ns/none") }},
		{"Reader.Entry", 0, func() { r.Entry("ns/k77") }},
		{"Reader.Snapshot, nothing new", 0, func() { r.Snapshot() }},
		{"Snapshot.Get", 0, func() { s.Get("ns/k77") }},
		{"All", 0, func() {
			for range s.All() {
				n++
			}
		}},
		{"Entries", 0, func() {
			for range s.Entries() {
				n++
			}
		}},
		{"ByIndex", 0, func() {
			for range s.ByIndex("color", "c1") {
				n++
			}
		}},
		{"Ordered, once sorted", 0, func() {
			for range s.Ordered() {
				n++
			}
		}},
		{"Put of an existing key, without snapshots", 1, func() {
			it := entries[i%len(entries)]
			it.Version = versions[i%len(versions)] // increasing versions, so that each batch publishes one
			w.Begin()
			w.Put(it)
			w.Commit()
			i += 7
		}},
		{"Fetch", 0, func() { w.Fetch([]object.Key{"ns/k77", "ns/none", "ns/k78"}) }},
		{"an empty batch", 0, func() { w.Begin(); w.Commit() }},
	} {
		c.do()
		if got := testing.AllocsPerRun(200, c.do); got > c.budget {
			t.Errorf("%s allocates %v times, the budget is %v", c.what, got, c.budget)
		}
	}
	if n == 0 {
		t.Error("nothing was iterated")
	}
}
