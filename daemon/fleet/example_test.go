package fleet_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
)

func Example() {
	server := informertest.NewServer()
	cfg, stop := informertest.Serve(server)
	defer stop()
	if _, err := server.Create(pod("web", "nginx-0")); err != nil {
		fmt.Println(err)
		return
	}

	f, err := fleet.New(fleet.Options{Include: []string{"pods"}, Logger: quiet()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	if err := f.Join("eu", cfg, fleet.Origin{Kind: fleet.FromFile, Detail: "example"}); err != nil {
		fmt.Println(err)
		return
	}
	eu, _ := f.Cluster("eu")
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for {
		changed := f.Changed() // before reading, so that no change is missed
		if r, ok := eu.Resource(pods); ok {
			if err := r.WaitVersion(ctx, server.Version()); err != nil {
				fmt.Println(err)
			}
			for key := range r.Snapshot().Ordered() {
				fmt.Println(eu.Name(), key)
			}
			break
		}
		<-changed
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// eu web/nginx-0
	// <nil>
}
