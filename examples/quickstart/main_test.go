package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informertest"
)

func pod(node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func TestPrintsALineForEachChangeOfPhase(t *testing.T) {
	defer goleak.VerifyNone(t)
	server := informertest.NewServer()
	cfg, stop := informertest.Serve(server)
	defer stop()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: "+
		"%q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\n", cfg.Host)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, in, kubeconfig, "shop"); in.Close() }()
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the output ended before %q", want)
		}
		got := strings.Join(strings.Fields(regexp.MustCompile(`^ *[0-9.]+s`).ReplaceAllString(lines.Text(), "")), " ")
		if got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(server.Create(pod("", corev1.PodPending)))
	expect("appears Pending shop/cart")
	must(server.Update(pod("node-1", corev1.PodPending))) // the phase is the same: no line
	must(server.Update(pod("node-1", corev1.PodRunning)))
	expect("changes Pending -> Running shop/cart on node-1")
	must(server.Delete(pod("node-1", corev1.PodRunning)))
	expect("is gone Running shop/cart on node-1")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestErrorWithoutClusterSaysHowToStartOne(t *testing.T) {
	err := run(t.Context(), io.Discard, filepath.Join(t.TempDir(), "none"), "")
	if err == nil || !strings.Contains(err.Error(), "make quickstart") {
		t.Errorf("err = %v", err)
	}
}
