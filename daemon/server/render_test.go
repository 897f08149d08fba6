package server

import "testing"

func TestItemsOfBuiltInListsHaveNoKind(t *testing.T) {
	for in, want := range map[string]string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{}}`: `{"metadata":{}}`,
		`{"apiVersion":"a/v1","kind":"X","metadata":{}}`: `{"apiVersion":"a/v1","kind":"X","metadata":{}}`,
		`{"kind":"Pod","metadata":{},"apiVersion":"v1"}`: `{"kind":"Pod","metadata":{},"apiVersion":"v1"}`,
		`{"kind":"Pod","apiVersion":"v1"}`:               `{"kind":"Pod","apiVersion":"v1"}`,
	} {
		obj := []byte(in)
		if got := string(obj[:cutKind(obj)]); got != want {
			t.Errorf("%s is served as %s", in, got)
		}
	}
}
