package factory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mirador-k8s/mirador/factory"
	"github.com/mirador-k8s/mirador/informertest"
)

func Example() {
	server := informertest.NewServer()
	config, shutdown := informertest.Serve(server)
	defer shutdown()
	for _, p := range []*corev1.Pod{pod("web", "nginx-0", "app=nginx"), pod("web", "redis-0", "app=redis"),
		pod("shop", "nginx-0", "app=nginx")} {
		if _, err := server.Create(p); err != nil {
			log.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	f, err := factory.New(config, nil)
	if err != nil {
		log.Fatal(err)
	}
	pods, err := factory.Of[*corev1.Pod](f, &factory.Scope{Namespaces: []string{"web"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.AddIndex("app", byApp); err != nil {
		log.Fatal(err)
	}
	if err := f.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := f.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}

	nginx, err := pods.Lister().ByIndex("app", "nginx")
	fmt.Println(len(nginx), nginx[0].Namespace, nginx[0].Name, err)
	_, err = pods.Lister().Get("web", "mysql-0")
	fmt.Println(apierrors.IsNotFound(err))
	_, err = pods.Lister().Get("shop", "nginx-0")
	fmt.Println(errors.Unwrap(err))
	fmt.Println(f.Stop(ctx))
	// Output:
	// 1 web nginx-0 <nil>
	// true
	// namespace "shop" is not mirrored here, only web; open the resource with a scope that includes it
	// <nil>
}

func ExampleAll() {
	server := informertest.NewServer()
	config, shutdown := informertest.Serve(server)
	defer shutdown()
	if _, err := server.Create(pod("web", "nginx-0")); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	f, err := factory.New(config, nil)
	if err != nil {
		log.Fatal(err)
	}
	batchAndCore := func(r factory.Resource) bool { return r.Group == "batch" || r.Kind == "Pod" }
	everything, err := factory.All(ctx, f, f.Metadata, batchAndCore)
	if err != nil {
		log.Fatal(err)
	}
	if err := f.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if err := f.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	for _, h := range everything.Handles() {
		objs, err := h.Lister().List(nil)
		fmt.Println(h.Resource().GroupResource(), len(objs), err)
	}
	fmt.Println(f.Stop(ctx))
	// Output:
	// cronjobs.batch 0 <nil>
	// jobs.batch 0 <nil>
	// pods 1 <nil>
	// <nil>
}

// A program that logs with logr passes its logger as a slog handler.
func ExampleOptions_logger() {
	server := informertest.NewServer()
	config, shutdown := informertest.Serve(server)
	defer shutdown()
	server.Inject(informertest.Fault{Resource: "pods", Code: 403, Times: 1})

	logged := make(chan string, 10)
	var logger logr.Logger = funcr.NewJSON(func(line string) { logged <- line }, funcr.Options{})
	f, err := factory.New(config, &factory.Options{Logger: slog.New(logr.ToSlogHandler(logger))})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := factory.Of[*corev1.Pod](f, nil); err != nil {
		log.Fatal(err)
	}
	if err := f.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(<-logged) > 0)
	fmt.Println(f.Stop(context.Background()))
	// Output:
	// true
	// <nil>
}
