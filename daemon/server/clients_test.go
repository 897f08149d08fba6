package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

func TestKubectlPrintsTheSameFromMirrorAndCluster(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	p.described(t)
	for _, args := range []string{
		"get pods -n web -o wide", "get pods -A", "get pods -n web -o yaml",
		"get pods -n web a -o jsonpath={.spec.containers[0].image}",
		"get pods -A -l app=web", "get pods -A --field-selector spec.nodeName=node-1",
		"get pods -A --sort-by .metadata.name", "get pod -n web a -o json",
		"get deploy,rs,sts,ds,jobs,cronjobs,svc,ing,cm -A", "get nodes", "get boats -A", "get bt -n web -o wide",
		"get oceans -o yaml", "get all -n web",
		"get pods -n web --chunk-size=1", "get pods -n web there-is-none --ignore-not-found", "explain pods.spec.nodeName",
		"explain boats.spec", "get events -A", "describe pod -n web a", "describe deployment -n web a",
		"describe node node-1",
		"get pv,pvc -A", "get ns -L app", "get secrets -n web",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		real, ours := kubectl(t, ctx, cluster, "", args), kubectl(t, ctx, cluster, p.ours, args)
		wantCode, want := real.ended(t)
		gotCode, got := ours.ended(t)
		cancel()
		if wantCode != 0 || gotCode != 0 {
			t.Errorf("kubectl %s: exit code %d on the cluster and %d on the mirror", args, wantCode, gotCode)
		}
		if want, got = normalised(strings.TrimSpace(want)), normalised(strings.TrimSpace(got)); ages(want) != ages(got) {
			t.Errorf("kubectl %s\nreal:\n%s\nours:\n%s", args, want, got)
		}
	}
	got := cluster.Kubectl(t, "--server", p.ours, "api-resources")
	for _, want := range []string{"boats", "deployments", "pods"} {
		if !strings.Contains(got, want) {
			t.Errorf("kubectl api-resources has no %s:\n%s", want, got)
		}
	}
}

// ages replaces the last column of kubectl's output if it is an age, which depends on the time.
func ages(out string) string {
	lines := strings.Split(out, "\n")
	for i, l := range lines {
		words := strings.Fields(l)
		for j, w := range words {
			if d, err := time.ParseDuration(strings.NewReplacer("d", "h", "y", "h").Replace(w)); err == nil &&
				d >= 0 && w != "0" {
				words[j] = "AGE"
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

func TestClientGoInformersWorkOnTheMirror(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, url := range []string{p.ours, p.all} {
		cfg := &rest.Config{Host: url}
		client, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		pods := informers.NewSharedInformerFactory(client, 0)
		typed := pods.Core().V1().Pods()
		lister := typed.Lister()
		pods.Start(ctx.Done())
		for typ, ok := range pods.WaitForCacheSync(ctx.Done()) {
			if !ok {
				t.Fatalf("client-go's informer of %v has not synced", typ)
			}
		}
		list, err := lister.List(everything)
		if err != nil || len(list) < 4 {
			t.Errorf("client-go's informer has %d pods, %v", len(list), err)
		}
		dyn, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		boats := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
		of := boats.ForResource(boatsResource)
		of.Informer()
		boats.Start(ctx.Done())
		boats.WaitForCacheSync(ctx.Done())
		if objs, err := of.Lister().List(everything); err != nil || len(objs) != 2 {
			t.Errorf("client-go's dynamic informer has %d boats, %v", len(objs), err)
		}
		src, err := kube.Typed[*corev1.Pod](cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := informer.New(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		run, stop := context.WithCancel(ctx)
		go func() { done <- ours.Run(run) }()
		if err := ours.WaitSynced(ctx); err != nil {
			t.Error(err)
		}
		if n := ours.Snapshot().Len(); n != len(list) {
			t.Errorf("a mirror of the mirror has %d pods of %d", n, len(list))
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	cancel()
}

// Clients that prefer protobuf also accept JSON, whether they say so or not: client-go adds */* to a content type.
func TestClientGoThatPrefersProtobufReadsTheMirror(t *testing.T) {
	p := mirror(t)
	p.caughtUp(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const protobuf = "application/vnd.kubernetes.protobuf"
	for url, namespace := range map[string]string{p.ours: "web", p.all: "eu.web"} {
		for _, accept := range []string{"", protobuf + ",application/json"} {
			client, err := kubernetes.NewForConfig(&rest.Config{Host: url, ContentConfig: rest.ContentConfig{
				ContentType: protobuf, AcceptContentTypes: accept}})
			if err != nil {
				t.Fatal(err)
			}
			pods := client.CoreV1().Pods(namespace)
			if _, err := pods.Get(ctx, "a", metav1.GetOptions{}); err != nil {
				t.Errorf("get at %s with Accept %q: %v", url, accept, err)
			}
			list, err := pods.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				t.Fatalf("list at %s with Accept %q: %d pods, %v", url, accept, len(list.Items), err)
			}
			watch, err := pods.Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatalf("watch at %s with Accept %q: %v", url, accept, err)
			}
			if e := <-watch.ResultChan(); e.Type != "ADDED" {
				t.Errorf("watch at %s with Accept %q: %s %v", url, accept, e.Type, e.Object)
			}
			watch.Stop()
		}
	}
}

// events returns a function that reads the next event of a watch.
func (p *pair) events(t *testing.T, ctx context.Context, url string) func() metav1.WatchEvent {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() (e metav1.WatchEvent) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the watch has ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		return e
	}
}

func TestFleetWatchSurvivesAJoiningClusterAndEndsForALeavingOne(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next := p.events(t, ctx, p.all+"/apis/server.test/v1/boats?watch=true")
	var seen []string
	name := func(e metav1.WatchEvent) string {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(e.Object.Raw, &o); err != nil {
			t.Fatal(err)
		}
		return e.Type + " " + o.Namespace + "/" + o.Name
	}
	for range 2 {
		seen = append(seen, name(next()))
	}
	if err := p.fleet.Join("us", cluster.Config(), fleet.Origin{Kind: "test"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		seen = append(seen, name(next()))
	}
	slices.Sort(seen)
	if want := []string{"ADDED eu.db/slow", "ADDED eu.web/swift", "ADDED us.db/slow",
		"ADDED us.web/swift"}; !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	cluster.Kubectl(t, "label", "boat", "-n", "web", "swift", "--overwrite",
		"wind="+strconv.FormatInt(time.Now().UnixNano(), 10))
	both := []string{name(next()), name(next())}
	slices.Sort(both)
	if want := []string{"MODIFIED eu.web/swift", "MODIFIED us.web/swift"}; !slices.Equal(both, want) {
		t.Errorf("%q", both)
	}
	if err := p.fleet.Leave(ctx, "us"); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Type != "ERROR" || !strings.Contains(string(e.Object.Raw), `"code":410`) {
		t.Errorf("the event after a cluster left is %s %s", e.Type, e.Object.Raw)
	}
}

var (
	everything    = labels.Everything()
	boatsResource = schema.GroupVersionResource{Group: "server.test", Version: "v1", Resource: "boats"}
)
