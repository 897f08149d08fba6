package reflector_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

// Versions that are not numbers cannot be compared, but a watch can resume at them.
func TestNonNumericVersionsAdvance(t *testing.T) {
	for name, trust := range map[string]bool{"versions are compared": false, "order is trusted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := source.Change[string]{Type: object.Deleted, Item: object.Item[string]{Key: "a", Version: "rev-d"}}
				s := &script{lists: []reply{{version: "rev-a", end: io.EOF}}, watches: []reply{
					{changes: []source.Change[string]{put("a", "rev-b")}, after: time.Minute, end: io.EOF},
					{changes: []source.Change[string]{bookmark("rev-c", false)}, after: time.Minute, end: io.EOF},
					{changes: []source.Change[string]{gone, put("b", ""), put("c", "0")}, after: time.Minute, end: io.EOF}, {}}}
				r, c, problems := start(t, s, func(o *reflector.Options[string]) { o.TrustOrder = trust })
				runFor(t, r, 5*time.Minute)
				want := []string{"list newest", `watch "rev-a"`, `watch "rev-b"`, `watch "rev-c"`, `watch "rev-d"`}
				if trust {
					want[4] = `watch "0"`
				}
				same(t, "asked", s.asked, want)
				same(t, "pushed", c.got, []string{"ReplaceBegin", "ReplaceEnd@rev-a", "Updated a@rev-b", "Bookmark@rev-c",
					"Deleted a@rev-d", "Updated b", "Updated c@0"})
				same(t, "problems", *problems, nil)
			})
		})
	}
}
