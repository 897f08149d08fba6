package query

import (
	"context"
	"testing"

	"github.com/mirador-k8s/mirador/store"
)

func BenchmarkLookup(b *testing.B) {
	raw := testPod(1)
	for name, text := range map[string]string{"top": "spec.nodeName",
		"deep": "spec.containers[2].resources.limits.memory", "absent": "status.absent"} {
		b.Run(name, func(b *testing.B) {
			p := mustPath(b, text)
			var d Doc
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				d.Reset(raw)
				d.find(p)
			}
		})
	}
	b.Run("map", func(b *testing.B) {
		var d Doc
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			d.Reset(raw)
			if _, err := d.asMap(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Each iteration is one request over 10,000 pods of 3.7 KB.
func BenchmarkScan10k(b *testing.B) {
	for _, layout := range []store.Layout{store.Live, store.Packed} {
		view := View[*blob]{Cluster: "eu", Snapshot: podStore(b, 10_000, layout).snapshot()}
		e := newEngine(b, options{})
		for _, c := range []struct {
			name string
			req  Request
		}{
			{"all", Request{}},
			{"namespace", Request{Namespace: "ns-3"}},
			{"labels", Request{Selection: mustSelect(b, "app=web-1,tier in (front)", "", "")}},
			{"fields", Request{Selection: mustSelect(b, "", "spec.nodeName=node-7", "")}},
			{"where", Request{Selection: mustSelect(b, "", "", "spec.nodeName == 'node-7'")}},
			{"whereEach", Request{Selection: mustSelect(b, "", "", "spec.containers.exists(c, c.image.endsWith(':v1.2'))")}},
			{"order", Request{Limit: 100, Order: mustOrder(b, "-metadata.creationTimestamp")}},
		} {
			b.Run(layout.String()+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.List(context.Background(), c.req, []View[*blob]{view}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		_, err := compile("spec.containers.exists(c, c.image.endsWith(':latest')) && metadata.labels.app == 'web'")
		if err != nil {
			b.Fatal(err)
		}
	}
}
