package fleet

import (
	"encoding/json"
	"testing"
)

func TestNamespaceIsFoundInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"Pod","metadata":{"name":"a","namespace":"web"}}`:                                  "web",
		`{"metadata":{"namespace":"web"},"spec":{"metadata":{"namespace":"other"}}}`:                "web",
		`{"spec":{"metadata":{"namespace":"other"}},"metadata":{"namespace":"web"}}`:                "web",
		` { "metadata" : { "labels" : {"namespace":"x","a":"}]\""} , "namespace" : "web" } } `:      "web",
		`{"metadata":{"managedFields":[{"a":[1,{"b":null}]},true,"x"],"n":-1.5,"namespace":"web"}}`: "web",
		`{"metadata":{"name":"a"}}`:                                        "",
		`{"metadata":{"namespace":""}}`:                                    "",
		`{"metadata":{"namespace":null}}`:                                  "",
		`{"metadata":{}}`:                                                  "",
		`{"metadata":{"namespace":"w\u0065b"}}`:                            "web",
		`{"a\"metadata":{"namespace":"x"},"metadata":{"namespace":"web"}}`: "web",
	} {
		got, err := byNamespace(&Object{Bytes: []byte(text)})
		if err != nil || len(got) > 1 || len(got) == 1 && got[0] != want || len(got) == 0 && want != "" {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := byNamespace(&Object{Bytes: []byte(`{"kind":"Pod"}`)}); err == nil {
		t.Error("no error for an object without metadata")
	}
}

// FuzzNamespaceEqualsThatOfAJSONDecoder compares the scan of any object with a JSON decoder. The
// scan must return for any input.
func FuzzNamespaceEqualsThatOfAJSONDecoder(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a","namespace":"web"}}`))
	f.Add([]byte(`{"metadata":{"a":[{"b":"\\\""},2],"namespace":"web"}}`))
	f.Add([]byte(`{"metadata":"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := byNamespace(&Object{Bytes: b})
		var whole map[string]json.RawMessage
		var meta map[string]json.RawMessage
		if json.Unmarshal(b, &whole) != nil || json.Unmarshal(whole["metadata"], &meta) != nil || meta == nil {
			return // the source never delivers such an object, or it has no metadata
		}
		var want string
		if json.Unmarshal(meta["namespace"], &want) != nil || want == "" {
			if len(got) != 0 {
				t.Fatalf("%q: %q, %v", b, got, err)
			}
			return
		}
		if err != nil || len(got) != 1 || got[0] != want {
			t.Fatalf("%q: %q, %v; want %q", b, got, err, want)
		}
	})
}
