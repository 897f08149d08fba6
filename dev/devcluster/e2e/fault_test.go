package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestFaults uses one cluster for all faults: each subtest leaves the cluster as it found it, or the next one fails.
func TestFaults(t *testing.T) {
	c := up(t, "--nodes", "1")
	client := c.client(t)
	server := strings.Fields(must(t, "kubeconfig", c.name, "--raw"))
	t.Run("PausedServerAnswersNothingUntilResumed", func(t *testing.T) {
		must(t, "fault", c.name, "pause", "apiserver")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := ask(ctx, client); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request to a paused server ended with: %v", err)
		}
		if r := run(t, "fault", c.name, "pause", "apiserver"); r.status != 1 ||
			!strings.Contains(r.stderr, "already paused") {
			t.Errorf("pausing twice: %d %s", r.status, r.stderr)
		}
		must(t, "fault", c.name, "resume", "apiserver")
		if err := ask(t.Context(), client); err != nil {
			t.Errorf("the resumed server: %v", err)
		}
		if r := run(t, "fault", c.name, "resume", "apiserver"); r.status != 1 || !strings.Contains(r.stderr, "not paused") {
			t.Errorf("resuming twice: %d %s", r.status, r.stderr)
		}
	})
	t.Run("KilledServerStaysDownUntilRestarted", func(t *testing.T) {
		before := c.process(t, "kube-apiserver")
		must(t, "fault", c.name, "kill", "apiserver")
		if err := ask(t.Context(), client); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a request to a killed server ended with: %v", err)
		}
		if c.ended() {
			t.Fatalf("the cluster treated the fault as a crash:\n%s", c.out)
		}
		if r := run(t, "fault", c.name, "pause", "apiserver"); r.status != 1 || !strings.Contains(r.stderr, "restart") {
			t.Errorf("pausing a dead server: %d %s", r.status, r.stderr)
		}
		must(t, "fault", c.name, "restart", "apiserver")
		if err := ask(t.Context(), client); err != nil {
			t.Errorf("the restarted server, at its old address: %v", err)
		}
		if after := c.process(t, "kube-apiserver"); after == before {
			t.Error("the restarted server is the same process")
		}
	})
	t.Run("RestartOfAPausedServerIsReadyWhenItReturns", func(t *testing.T) {
		must(t, "fault", c.name, "pause", "apiserver")
		must(t, "fault", c.name, "restart", "apiserver")
		if err := ask(t.Context(), client); err != nil {
			t.Errorf("the restarted server: %v", err)
		}
	})
	t.Run("EveryPartCanBeRestarted", func(t *testing.T) {
		for _, part := range []string{"etcd", "controller-manager", "scheduler", "kwok"} {
			must(t, "fault", c.name, "restart", part)
		}
		c.kubectl(t, "create", "deployment", "after", "--image=nginx")
		c.kubectl(t, "rollout", "status", "deployment/after", "--timeout=90s")
	})
	t.Run("CompactionEndsAResumedWatchWith410", func(t *testing.T) {
		testCompact(t, c, client)
	})
	t.Run("RotatedCertificateIsOfTheOtherAuthorityAndTrusted", func(t *testing.T) {
		testRotate(t, c)
	})
	if again := strings.Fields(must(t, "kubeconfig", c.name, "--raw")); strings.Join(again,
		" ") != strings.Join(server, " ") {
		t.Error("the kubeconfig has changed: clients made before would fail")
	}
}

// ask sends a request that the server can only answer from etcd.
func ask(ctx context.Context, client *kubernetes.Clientset) error {
	_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err
}

// testCompact resumes a watch from before a compaction. It uses the newest version, which is the last one to be lost,
// after checking that a watch from it worked until then.
func testCompact(t *testing.T, c *cluster, client *kubernetes.Clientset) {
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "last"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if gone(t, client, list.ResourceVersion) {
		t.Fatalf("version %s is gone before the compaction", list.ResourceVersion)
	}
	must(t, "fault", c.name, "compact")
	if !gone(t, client, list.ResourceVersion) {
		t.Errorf("a watch from version %s, from before the compaction, still works", list.ResourceVersion)
	}
}

// gone reports whether a watch from that version fails with 410.
func gone(t *testing.T, client *kubernetes.Clientset, version string) bool {
	t.Helper()
	seconds := int64(2)
	w, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
	if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			status, ok := event.Object.(*metav1.Status)
			if !ok || status.Code != http.StatusGone {
				t.Fatalf("the watch ended with %v", event.Object)
			}
			return true
		}
	}
	return false
}

// testRotate rotates twice: to the other authority, and back. Existing clients and the parts of the cluster continue
// to work.
func testRotate(t *testing.T, c *cluster) {
	issuer := func() string {
		config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(must(t, "kubeconfig", c.name)))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(config.CAData)
		conn, err := tls.Dial("tcp", strings.TrimPrefix(config.Host, "https://"), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Issuer.CommonName
	}
	first := issuer()
	must(t, "fault", c.name, "rotate")
	if second := issuer(); second == first {
		t.Errorf("the new certificate is of the same authority, %s", second)
	}
	must(t, "fault", c.name, "restart", "controller-manager")
	c.kubectl(t, "create", "deployment", "rotated", "--image=nginx")
	c.kubectl(t, "rollout", "status", "deployment/rotated", "--timeout=90s")
	must(t, "fault", c.name, "rotate")
	if third := issuer(); third != first {
		t.Errorf("after two rotations the authority is %s, not %s", third, first)
	}
}
