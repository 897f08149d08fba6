package fleet

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func testOrder() (schema.GroupVersionResource, *Order) {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, &Order{Start: 7,
		Members: []OrderMember{{"eu", "u-1", "10"}, {"us", "u-2", ""}},
		Changes: []OrderedChange{{9, "eu", "web/a", "11", false}, {10, "us", "web/b", "5", true}, {Seq: 12}},
		Unknown: []VersionSpan{{3, 7}}}
}

// What is not an order is an error, and what is one is encoded as it was.
func FuzzDecodeOrder(f *testing.F) {
	gvr, o := testOrder()
	var seed []byte
	for _, r := range new(orderEncoder).whole(gvr, o) {
		seed = append(append(seed, byte(len(r))), r...)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		var records [][]byte
		for len(b) > 0 {
			n := min(int(b[0]), len(b)-1)
			records, b = append(records, b[1:n+1]), b[n+1:]
		}
		gvr, o, _, err := decodeOrder(records)
		if err != nil {
			return
		}
		gvrAgain, again, whole, err := decodeOrder(new(orderEncoder).whole(gvr, o))
		if len(records) == 0 {
			return
		}
		if err != nil || !whole || gvrAgain != gvr || again.Start != o.Start || again.Last() != o.Last() ||
			!reflect.DeepEqual(again.Unknown, o.Unknown) || len(again.Changes) != len(o.Changes) {
			t.Fatalf("%v %+v became %v %+v, %v", gvr, o, gvrAgain, again, err)
		}
	})
}

func TestAnOrderIsReadAsItWasWritten(t *testing.T) {
	gvr, o := testOrder()
	var e orderEncoder
	records := e.whole(gvr, o)
	records = append(records, e.member(OrderMember{"ap", "u-3", "4"}), e.change(OrderedChange{20, "ap", "n", "5", false}))
	gotGVR, got, whole, err := decodeOrder(records)
	want := *o
	want.Members = append(want.Members, OrderMember{"ap", "u-3", "4"})
	want.Changes = append(want.Changes, OrderedChange{20, "ap", "n", "5", false})
	if err != nil || !whole || gotGVR != gvr || !reflect.DeepEqual(got, &want) || got.Last() != 20 {
		t.Errorf("%v %+v, whole %v, %v", gotGVR, got, whole, err)
	}
	if _, _, whole, err := decodeOrder(records[:5]); whole || err != nil {
		t.Errorf("a part is whole: %v, %v", whole, err)
	}
	for name, records := range map[string][][]byte{
		"no head":                  records[1:],
		"two heads":                append([][]byte{records[0]}, records...),
		"an unknown kind":          append(records[:1:1], []byte("x")),
		"more than a record":       append(records[:1:1], append(e.member(o.Members[0]), 1)),
		"an unknown cluster":       {records[0], e.change(o.Changes[0])},
		"versions that go back":    append(records[:len(records):len(records)], e.change(o.Changes[0])),
		"an empty record":          append(records[:1:1], nil),
		"a cluster without a name": append(records[:1:1], e.member(OrderMember{})),
	} {
		if _, _, _, err := decodeOrder(records); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}
