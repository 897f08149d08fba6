package jsondiff_test

import (
	"encoding/json"
	"testing"

	"github.com/mirador-k8s/mirador/internal/jsondiff"
)

func TestDifferencesArePointersWithBothValues(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{`{"a":1}`, `{"a":1}`, `null`},
		{`{"metadata":{"resourceVersion":"1","managedFields":[1],"name":"x"}}`, `{"metadata":{"name":"x"}}`, `null`},
		{`{"spec":{"replicas":1}}`, `{"spec":{"replicas":3}}`,
			`[{"op":"replace","path":"/spec/replicas","old":1,"new":3}]`},
		{`{"a":{"x/y":"1","m~n":0}}`, `{"a":{"x/y":"2","m~n":false}}`,
			`[{"op":"replace","path":"/a/m~0n","old":0,"new":false},{"op":"replace","path":"/a/x~1y","old":"1","new":"2"}]`},
		{`{"a":1}`, `{"b":{"c":2}}`, `[{"op":"remove","path":"/a","old":1},{"op":"add","path":"/b","new":{"c":2}}]`},
		{`{"l":[1,2,3,4]}`, `{"l":[1,3,4]}`, `[{"op":"remove","path":"/l/1","old":2}]`},
		{`{"l":[1,2]}`, `{"l":[0,1,2,3]}`, `[{"op":"replace","path":"/l/0","old":1,"new":0},` +
			`{"op":"replace","path":"/l/1","old":2,"new":1},{"op":"add","path":"/l/2","new":2},` +
			`{"op":"add","path":"/l/3","new":3}]`},
		{`{"l":[{"n":"a","v":1},{"n":"b","v":1}]}`, `{"l":[{"n":"a","v":2},{"n":"b","v":1}]}`,
			`[{"op":"replace","path":"/l/0/v","old":1,"new":2}]`},
		{`{"l":[]}`, `{"l":{}}`, `[{"op":"replace","path":"/l","old":[],"new":{}}]`},
		{`{"n":12345678901234567890}`, `{"n":12345678901234567891}`,
			`[{"op":"replace","path":"/n","old":12345678901234567890,"new":12345678901234567891}]`},
		{`{"n":null}`, `{"n":""}`, `[{"op":"replace","path":"/n","new":""}]`},
		{`{"x":[1,1,1]}`, `{"x":[1]}`, `[{"op":"remove","path":"/x/1","old":1},{"op":"remove","path":"/x/2","old":1}]`},
	} {
		changes, err := jsondiff.Objects([]byte(c.old), []byte(c.now))
		got, merr := json.Marshal(changes)
		if err != nil || merr != nil || string(got) != c.want {
			t.Errorf("%s and %s: %s (%v), want %s", c.old, c.now, got, err, c.want)
		}
	}
	if _, err := jsondiff.Objects([]byte(`{}`), []byte(`[`)); err == nil {
		t.Error("damaged JSON is accepted")
	}
}
