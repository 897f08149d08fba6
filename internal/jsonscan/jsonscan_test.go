package jsonscan

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
		{`{"a":1,"\u0061":2}`, "a", `2`},
		{`{"a":1}`, "b", ""},
		{`{}`, "b", ""},
		{`[]`, "b", ""},
		{``, "b", ""},
		{`{"a`, "a", ""},
		{`{"a":`, "a", ``},
	} {
		from, to, _ := Member([]byte(c.obj), c.name)
		if got := c.obj[from:to]; got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.name, c.obj, got, c.want)
		}
	}
}

func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"x":"y\\"}},"spec":[1,2,{}]}`), "metadata")
	f.Add([]byte(` {"a" : -1.5e3 }`), "a")
	f.Fuzz(func(t *testing.T, obj []byte, name string) {
		from, to, ok := Member(obj, name)
		if from < 0 || to < from || to > len(obj) {
			t.Fatalf("%d to %d of %d bytes", from, to, len(obj))
		}
		var decoded map[string]json.RawMessage
		if json.Unmarshal(obj, &decoded) != nil || decoded == nil {
			return
		}
		want, there := decoded[name]
		if there != ok || there && string(want) != string(obj[from:to]) {
			t.Fatalf("%q of %s: %q (%v), and decoded it is %q (%v)", name, obj, obj[from:to], ok, want, there)
		}
	})
}

func TestQuoteAndUnquoteKeepAnyText(t *testing.T) {
	for _, text := range []string{"", "web", "a\"b", "a\\", "a\nb", "é", "\x00"} {
		quoted := Quote(text)
		var decoded string
		if err := json.Unmarshal([]byte(quoted), &decoded); err != nil || decoded != text {
			t.Errorf("%q is quoted as %s and unquoted as %q, %v", text, quoted, decoded, err)
		}
		if got := Unquoted([]byte(quoted)); got != text {
			t.Errorf("%s says %q, want %q", quoted, got, text)
		}
	}
	for _, other := range []string{"", "1", `"`, "{}", "null"} {
		if got := Unquoted([]byte(other)); got != "" {
			t.Errorf("%s says %q", other, got)
		}
	}
}

// FuzzScan: on valid JSON every part is found where a decoder finds it, and on anything at all the scan ends.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"x":"y\\"}},"spec":[1,2,{}]}`))
	f.Add([]byte(` [ "a\u0062" , -1.5e3 , [ ] , { } , null ] `))
	f.Add([]byte("{\"a\": \"\xff\"}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var object map[string]json.RawMessage
		if i, ok := Open(b); ok {
			found := map[string]string{}
			for more := true; more; {
				var m Named
				if m, i, more = Next(b, i); more {
					found[Unquote(m.Name, m.Escaped)] = string(b[m.From:m.To])
				}
			}
			if json.Unmarshal(b, &object) == nil {
				compare(t, b, found, object)
			}
		}
		var array []json.RawMessage
		valid := json.Unmarshal(b, &array) == nil && array != nil
		for i, n, more := Space(b, 0)+1, 0, true; more; n++ {
			var v []byte
			if v, i, more = NextElement(b, i); valid && (more != (n < len(array)) || more && string(v) != string(array[n])) {
				t.Fatalf("element %d of %q is %q", n, b, v)
			}
		}
	})
}

func compare(t *testing.T, b []byte, found map[string]string, object map[string]json.RawMessage) {
	if len(found) != len(object) {
		t.Fatalf("%q: found are %q, decoded %q", b, found, object)
	}
	for name, value := range object {
		if found[name] != string(value) {
			t.Fatalf("%q of %q: found is %q, decoded %q", name, b, found[name], value)
		}
	}
}
