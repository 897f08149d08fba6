package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLabelsAreFoundInJSON(t *testing.T) {
	many, want := `{"metadata":{"labels":{`, []string(nil)
	for i := range 100 {
		many += fmt.Sprintf(`"l%03d":"v",`, i)
		want = append(want, fmt.Sprintf("l%03d=v", i))
	}
	for text, want := range map[string][]string{
		`{"kind":"Pod","metadata":{"name":"a","labels":{"app":"web","tier":""},"uid":"x"}}`: {"app=web", "tier="},
		` { "metadata" : { "labels" : { "app" : "web" , "b":"}{" } } } `:                    {"app=web", "b=}{"},
		`{"spec":{"labels":{"no":"no"}},"metadata":{"labels":{"app":"web"}}}`:               {"app=web"},
		`{"metadata":{"labels":{"app":"w\u0065b"}}}`:                                        {"app=web"},
		`{"metadata":{"labels":{"\u0061pp":"web"}}}`:                                        {"app=web"},
		`{"metadata":{"labels":{"app":"old","app":"new","ap":"p"}}}`:                        {"ap=p", "app=new"},
		`{"metadata":{"labels":{"app":7,"tier":"x","a":null,"b":{"c":"d"}}}}`:               {"tier=x"},
		`{"metadata":{"labels":{}}}`:                                                        nil,
		`{"metadata":{"labels":null}}`:                                                      nil,
		`{"metadata":{"labels":"no"}}`:                                                      nil,
		`{"metadata":{}}`:                                                                   nil,
		`{"kind":"Pod"}`:                                                                    nil,
		strings.TrimSuffix(many, ",") + "}}}":                                               want,
	} {
		got, err := byLabel(&Object{Bytes: []byte(text)})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

// FuzzLabelsEqualThoseOfAJSONDecoder compares the scan of any object with a JSON decoder. The
// scan must return for any input.
func FuzzLabelsEqualThoseOfAJSONDecoder(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a","labels":{"app":"web","tier":"front"}}}`))
	f.Add([]byte(`{"metadata":{"a":[{"b":"\\\""},2],"labels":{"app":"a","app":"\u0062"}}}`))
	f.Add([]byte(`{"metadata":{"labels":{"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := byLabel(&Object{Bytes: b})
		var whole, meta map[string]json.RawMessage
		if json.Unmarshal(b, &whole) != nil {
			return // the source never delivers such an object
		}
		var set map[string]any
		if json.Unmarshal(whole["metadata"], &meta) != nil || json.Unmarshal(meta["labels"], &set) != nil {
			set = nil
		}
		var want []string
		for name, value := range set {
			if text, ok := value.(string); ok {
				want = append(want, name+"="+text)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %q, %v; want %q", b, got, err, want)
		}
	})
}
