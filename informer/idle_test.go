package informer_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/source/kube"
)

// On an idle server a watch ends only by its timeout. The bookmarks come at unequal intervals, as those of a real API
// server do.
func TestP11_NoWatchOfAnIdleServerIsReopenedBeforeItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer(informertest.BookmarkEvery(time.Minute))
		cfg, stop := informertest.Pipe(server)
		defer stop()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		resources := []string{"pods", "configmaps", "secrets", "services", "nodes", "namespaces", "events", "endpoints"}
		var all []*informer.Informer[*unstructured.Unstructured]
		for _, name := range resources {
			src, err := kube.Dynamic(cfg, schema.GroupVersionResource{Version: "v1", Resource: name}, nil)
			if err != nil {
				t.Fatal(err)
			}
			inf, err := informer.New(src, &informer.Options[*unstructured.Unstructured]{
				Name: name, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, inf)
			go func() { ended <- inf.Run(ctx) }()
		}
		time.Sleep(2 * time.Hour)
		cancel()
		for range all {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		for _, inf := range all {
			if h := inf.Health().Reflector; h.Silences > 0 || len(h.Errors) > 0 {
				t.Errorf("%s: %d watches were closed for silence, errors %v", inf.Name(), h.Silences, h.Errors)
			}
		}
		last := map[string]informertest.Request{}
		watches := 0
		for _, r := range server.Requests() {
			if r.Verb != "watch" {
				continue
			}
			watches++
			if before, ok := last[r.Resource.Resource]; ok {
				seconds, err := strconv.Atoi(before.Query.Get("timeoutSeconds"))
				if err != nil {
					t.Fatal(err)
				}
				if lasted := r.Time.Sub(before.Time); lasted < time.Duration(seconds)*time.Second {
					t.Fatalf("a watch of %s that was to last %ds was given up after %s", r.Resource.Resource, seconds, lasted)
				}
			}
			last[r.Resource.Resource] = r
		}
		if len(last) != len(all) || watches < 12*len(all) {
			t.Errorf("%d watches of %d resources in two hours: they did not end at all", watches, len(last))
		}
	})
}
