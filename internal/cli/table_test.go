package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tableJSON = `{"columnDefinitions":[{"name":"Cluster","type":"string"},{"name":"Name","type":"string"},{"name":"Ready","type":"string"},
{"name":"Restarts","type":"integer"},{"name":"Node","type":"string","priority":1}],
"rows":[{"cells":["eu","web-0","1/1",12,"node-1"],"object":{"metadata":{"name":"web-0","namespace":"eu.shop","annotations":{"mirador.dev/cluster":"eu"}}}},
{"cells":["us","überlang-1","0/1",0,null],"object":{"metadata":{"name":"überlang-1","namespace":"us.shop","annotations":{"mirador.dev/cluster":"us"}}}},
{"cells":["us","evil\u001b[2J","line\nbreak",1.5,true],"object":{"metadata":{"name":"evil","namespace":"us.shop","annotations":{"mirador.dev/cluster":"us"}}}}]}`

func TestTablesAreWrittenInColumns(t *testing.T) {
	var p page
	if err := json.Unmarshal([]byte(tableJSON), &p); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    outputFlags
		all  bool
		want string
	}{
		{"plain", outputFlags{}, false, `
CLUSTER   NAME         READY     RESTARTS
eu        web-0        1/1       12
us        überlang-1   0/1       0
us        evil?[2J     line...   1.5
`},
		{"all namespaces, wide", outputFlags{form: asWide}, true, `
CLUSTER   NAMESPACE   NAME         READY     RESTARTS   NODE
eu        shop        web-0        1/1       12         node-1
us        shop        überlang-1   0/1       0          <none>
us        shop        evil?[2J     line...   1.5        true
`},
		{"no heads", outputFlags{noHeaders: true}, false, `
eu   web-0        1/1       12
us   überlang-1   0/1       0
us   evil?[2J     line...   1.5
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			cmd := &readCommand{outputFlags: c.o}
			if _, err := cmd.show(&b, &ask{mapping: pods, all: c.all}, &result{page: p}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want[1:], b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLaterRowsStandBelowThoseBefore(t *testing.T) {
	var b bytes.Buffer
	a := aligned{w: &b}
	for _, rows := range [][][]string{{{"NAME", "AGE"}, {"a-long-name", "1s"}}, {{"b", "2s"}}} {
		if err := a.write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff("NAME          AGE\na-long-name   1s\nb             2s\n", b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestObjectsAreShownInEveryForm(t *testing.T) {
	items := []json.RawMessage{
		[]byte(`{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{"count":9007199254740993}}`),
		[]byte(`{"metadata":{"name":"b"}}`),
	}
	for _, c := range []struct {
		output string
		names  []string
		items  []json.RawMessage
		want   string
	}{
		{"name", nil, items, "pod/a\npod/b\n"},
		{"jsonpath={.items[*].metadata.name}", nil, items, "a b"},
		{"jsonpath=.metadata.name", []string{"a"}, items[:1], "a"},
		{"yaml", []string{"a"}, items[:1], "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  count: 9007199254740993\n"},
		{"json", []string{"b"}, items[1:], "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"Pod\",\n    \"metadata\": {\n        \"name\": \"b\"\n    }\n}\n"},
		{"jsonpath={.kind} {.items[1].kind}", nil, items, "List Pod"},
		{"yaml", []string{"a"}, nil, ""},
	} {
		t.Run(c.output, func(t *testing.T) {
			cmd := &readCommand{outputFlags: outputFlags{output: c.output}}
			if err := cmd.parse(); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := cmd.show(&b, &ask{mapping: pods, names: c.names}, &result{page: page{Items: c.items}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
