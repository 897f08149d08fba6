package main

import (
	"bufio"
	"context"
	"os"
	"slices"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/informertest"
)

func pod(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: phase}}
}

func TestPrintsChangesAndReadsTheIndex(t *testing.T) {
	defer goleak.VerifyNone(t)
	server := informertest.NewServer()
	config, stop := informertest.Pipe(server)
	defer stop()
	if _, err := server.Create(pod(corev1.PodPending)); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	defer func() { os.Stdout = stdout; write.Close(); read.Close() }()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, config) }()
	lines := bufio.NewScanner(read)
	next := func() string { lines.Scan(); return lines.Text() }

	// The handler and the main goroutine print concurrently.
	first := []string{next(), next()}
	slices.Sort(first)
	if want := []string{"added cart", "on node-1: shop cart"}; !slices.Equal(first, want) {
		t.Errorf("printed %q, want %q", first, want)
	}
	if _, err := server.Update(pod(corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	if got, want := next(), "updated cart Pending Running"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if _, err := server.Delete(pod(corev1.PodRunning)); err != nil {
		t.Fatal(err)
	}
	if got, want := next(), "deleted cart"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
