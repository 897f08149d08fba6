package server_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/server"
)

func TestKubectlReadsThePastByPath(t *testing.T) {
	cluster := filled(t)
	ns := cluster.Namespace(t)
	d, err := disk.Open(t.TempDir(), disk.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	fl, err := fleet.New(fleet.Options{Include: []string{"configmaps", "namespaces"}, WithoutOpenAPI: true, Disk: d,
		Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = fl.Join("eu", cluster.Config(), fleet.Origin{Kind: "test"})
	}
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(fl, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{fl.Run, srv.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	web := httptest.NewServer(srv)
	defer func() {
		cancel()
		running.Wait()
		web.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	get := func(server, args string) (int, string) {
		t.Helper()
		run, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		return kubectl(t, run, cluster, server, args+" -n "+ns).ended(t)
	}
	cluster.Kubectl(t, "create", "configmap", "a", "-n", ns, "--from-literal=color=red")
	cluster.Kubectl(t, "create", "configmap", "b", "-n", ns, "--from-literal=color=red")
	cluster.Kubectl(t, "label", "configmap", "-n", ns, "a", "b", "app=web")
	eu := web.URL + "/clusters/eu"
	until(t, func() string {
		code, out := get(eu+"@-0s", "get cm -l app=web -o name")
		if code != 0 || strings.TrimSpace(out) != "configmap/a\nconfigmap/b" {
			return out
		}
		return ""
	})
	then := eu + "@" + at(time.Now())
	cluster.Kubectl(t, "patch", "configmap", "-n", ns, "a", "--type=merge", "-p", `{"data":{"color":"blue"}}`)
	cluster.Kubectl(t, "delete", "configmap", "-n", ns, "b")
	until(t, func() string {
		_, out := get(eu, "get cm -l app=web -o jsonpath={.items[*].data.color}")
		if out != "blue" {
			return out
		}
		return ""
	})
	for args, want := range map[string]string{
		"get cm -l app=web -o name":                               "configmap/a\nconfigmap/b\n",
		"get cm -l app=web -o jsonpath={.items[*].data.color}":    "red red",
		"get cm b -o jsonpath={.data.color}":                      "red",
		"get cm -l app=web --no-headers -o custom-columns=:.kind": "ConfigMap\nConfigMap\n",
	} {
		if code, out := get(then, args); code != 0 || out != want {
			t.Errorf("kubectl %s: %d %q, want %q", args, code, out, want)
		}
	}
	if code, out := get(then, "get cm -l app=web"); code != 0 || strings.Count(out, "\n") != 3 {
		t.Errorf("kubectl get cm: %d %s", code, out)
	}
	if code, out := get(eu+"@-9000h", "get cm"); code == 0 || !strings.Contains(out, "begins at") {
		t.Errorf("before the history: %d %s", code, out)
	}
	if code, out := get(then, "get cm c"); code == 0 || !strings.Contains(out, "NotFound") {
		t.Errorf("an object that did not exist: %d %s", code, out)
	}
}
