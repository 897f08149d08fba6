package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tableJSON = `{"columnDefinitions":[
{"name":"Cluster","type":"string"},{"name":"Name","type":"string"},{"name":"Ready","type":"string"},
{"name":"Restarts","type":"integer"},{"name":"Node","type":"string","priority":1}],
"rows":[{"cells":["eu","web-0","1/1",12,"node-1"],
"object":{"metadata":{"name":"web-0","namespace":"eu.shop","annotations":{"mirador.dev/cluster":"eu"}}}},
{"cells":["us","überlang-1","0/1",0,null],
"object":{"metadata":{"name":"überlang-1","namespace":"us.shop","annotations":{"mirador.dev/cluster":"us"}}}},
{"cells":["us","evil\u001b[2J","line\nbreak",1.5,true],
"object":{"metadata":{"name":"evil","namespace":"us.shop","annotations":{"mirador.dev/cluster":"us"}}}}]}`

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
			if err := cmd.show(&b, []found{{&ask{mapping: pods, all: c.all}, &result{page: p}}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want[1:], b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLaterRowsAreAlignedWithEarlierOnes(t *testing.T) {
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
