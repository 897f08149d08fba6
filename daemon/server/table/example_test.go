package table_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/server/table"
)

func ExampleFor() {
	p := table.For(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	row, err := p.Row([]byte(`{
		"metadata": {"name": "web", "creationTimestamp": "2026-05-01T09:00:00Z"},
		"spec": {"nodeName": "n1", "containers": [{"name": "a"}]},
		"status": {"phase": "Running", "containerStatuses": [{"name": "a", "ready": true, "restartCount": 2,
			"state": {"running": {}}, "lastState": {"terminated": {"finishedAt": "2026-05-01T11:50:00Z"}}}]}
	}`), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range p.Columns() {
		if c.Priority == 0 {
			fmt.Printf("%s: %v\n", c.Name, row.Cells[i])
		}
	}
	// Output:
	// Name: web
	// Ready: 1/1
	// Status: Running
	// Restarts: 2 (10m ago)
	// Age: 3h
}
