package server

import (
	"encoding/json"
	"testing"
)

func TestMemberFindsTheExtentOfAValue(t *testing.T) {
	for _, c := range []struct{ obj, name, want string }{
		{`{"a":1,"b":{"a":"}"},"c":[1,{"x":"]"}]}`, "b", `{"a":"}"}`},
		{`{"a":1,"b":{"a":"}"},"c":[1,{"x":"]"}]}`, "c", `[1,{"x":"]"}]`},
		{` { "a" : "x\"y" , "b":true} `, "a", `"x\"y"`},
		{` { "a" : "x\"y" , "b":true} `, "b", `true`},
		{`{"a":1,"a":2}`, "a", `2`},
		{`{"a":1}`, "b", ""},
		{`{}`, "b", ""},
		{`[]`, "b", ""},
		{``, "b", ""},
		{`{"a`, "a", ""},
		{`{"a":`, "a", ``},
	} {
		from, to, _ := member([]byte(c.obj), c.name)
		if got := c.obj[from:to]; got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.name, c.obj, got, c.want)
		}
	}
}

func TestItemsOfBuiltInListsAreServedWithoutTheirKind(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{}}`: `{"metadata":{}}`,
		`{"apiVersion":"a/v1","kind":"X","metadata":{}}`: `{"apiVersion":"a/v1","kind":"X","metadata":{}}`,
		`{"kind":"Pod","metadata":{},"apiVersion":"v1"}`: `{"kind":"Pod","metadata":{},"apiVersion":"v1"}`,
		`{"kind":"Pod","apiVersion":"v1"}`:               `{"kind":"Pod","apiVersion":"v1"}`,
	} {
		head, rest := withoutKind([]byte(in))
		if got := string(head) + string(rest); got != want {
			t.Errorf("%s is served as %s", in, got)
		}
	}
}

func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"x":"y\\"}},"spec":[1,2,{}]}`), "metadata")
	f.Add([]byte(` {"a" : -1.5e3 }`), "a")
	f.Fuzz(func(t *testing.T, obj []byte, name string) {
		from, to, ok := member(obj, name)
		if from < 0 || to < from || to > len(obj) {
			t.Fatalf("%d to %d of %d bytes", from, to, len(obj))
		}
		withoutKind(obj)
		var decoded map[string]json.RawMessage
		if json.Unmarshal(obj, &decoded) != nil || decoded == nil {
			return
		}
		for k := range decoded {
			if b, _ := json.Marshal(k); len(b) != len(k)+2 {
				return // a name with escapes is none of ours
			}
		}
		want, there := decoded[name]
		if there != ok || there && string(want) != string(obj[from:to]) {
			t.Fatalf("%q of %s: %q (%v), and decoded it is %q (%v)", name, obj, obj[from:to], ok, want, there)
		}
	})
}
