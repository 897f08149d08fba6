package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// gauge returns one number of /metrics.
func (d *daemon) gauge(t *testing.T, name string) float64 {
	t.Helper()
	code, b, err := d.get("/metrics")
	if err != nil || code != http.StatusOK {
		t.Fatalf("/metrics: %d, %v", code, err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			check(t, err)
			return v
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}

// watchSocket opens a watch on a connection of its own, with HTTP/1.1.
func watchSocket(t *testing.T, d *daemon, ca []byte, path string) (net.Conn, *http.Response) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	raw, err := net.Dial("tcp", strings.TrimPrefix(d.at, "https://"))
	check(t, err)
	conn := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	check(t, err)
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	check(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s is answered %s", path, resp.Status)
	}
	return conn, resp
}

// watchStream opens a watch with HTTP/2, on the client's connection.
func watchStream(t *testing.T, d *daemon, path string) *http.Response {
	t.Helper()
	resp, err := d.client.Get(d.at + path)
	check(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Fatalf("%s is answered %s in %s", path, resp.Status, resp.Proto)
	}
	return resp
}

const churned, churns = 8, 400

// churn changes some ConfigMaps many times, and labels each at the end.
func churn(k *kubernetes.Clientset, ns string) error {
	var wg sync.WaitGroup
	errs := make([]error, churned)
	for i := range churned {
		wg.Go(func() {
			for n := 1; n <= churns && errs[i] == nil; n++ {
				patch := fmt.Sprintf(`{"metadata":{"labels":{"done":"%v"}},"data":{"pad":"%s"}}`, n == churns,
					strings.Repeat(fmt.Sprintf("%06d ", i*churns+n), 1200))
				_, errs[i] = k.CoreV1().ConfigMaps(ns).Patch(context.Background(), fmt.Sprintf("cm-%d", i), types.MergePatchType,
					[]byte(patch), metav1.PatchOptions{})
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// errGone410 is the end of a watch that is too slow.
var errGone410 = errors.New("410 Gone, and then a complete answer")

// follows reads a watch until all objects are labelled, checks the order, and returns the number of events.
func follows(body io.Reader) (events int, err error) {
	lines := bufio.NewReaderSize(body, 64<<10)
	version, done := map[string]int{}, 0
	for ; done < churned; events++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events, err
		}
		var e struct {
			Type   string
			Object struct {
				Code     int
				Metadata metav1.ObjectMeta
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return events, err
		}
		if e.Type == "ERROR" && e.Object.Code == http.StatusGone {
			if _, err = lines.ReadByte(); errors.Is(err, io.EOF) {
				err = errGone410
			}
			return events, err
		}
		m := e.Object.Metadata
		n, err := strconv.Atoi(m.ResourceVersion)
		if err != nil || n <= version[m.Name] {
			return events, fmt.Errorf("%s of %s at %s comes after %d: %w", e.Type, m.Name, m.ResourceVersion,
				version[m.Name], err)
		}
		version[m.Name] = n
		if m.Labels["done"] == "true" {
			done++
		}
	}
	return events, nil
}

// The test has 14 such watchers, and 36 if MIRADOR_NIGHTLY is set.
func TestWatchersThatReadNothingAreEndedWithoutAffectingOthers(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	_, k := clients(t, cluster)
	ns := cluster.Namespace(t)
	for i := range churned {
		_, err := k.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cm-%d", i)}}, metav1.CreateOptions{})
		check(t, err)
	}
	p, config := certificate(t), filepath.Join(t.TempDir(), "config")
	check(t, os.WriteFile(config, kubeconfig(t, cluster, "with-stuck-watchers"), 0o600))
	client := httpClient(t, &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: p.ca}})
	d := begin(t, client, "--listen", "127.0.0.1:0", "--kubeconfig", config, "--tls-cert", p.cert, "--tls-key", p.key)
	name := d.members(t)[0]
	d.ready(t, name)
	own := "/clusters/" + name + "/api/v1/namespaces/" + ns + "/configmaps"
	all := "/fleet/api/v1/namespaces/" + name + "." + ns + "/configmaps"
	for _, path := range []string{own, all} { // the hub of the fleet stays for a while
		_, _, err := list(d.client, d.at+path)
		check(t, err)
	}
	goroutines, descriptors, resident := d.gauge(t, "go_goroutines"), d.gauge(t, "process_open_fds"), d.gauge(t,
		"process_resident_memory_bytes")

	sockets, streams := 10, 4
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		sockets, streams = 30, 6
	}
	var stuck []io.Reader
	for i := range sockets {
		_, resp := watchSocket(t, d, p.ca, []string{own, all}[i%2]+"?watch=true")
		stuck = append(stuck, resp.Body)
	}
	for i := range streams {
		stuck = append(stuck, watchStream(t, d, []string{own, all}[i%2]+"?watch=true").Body)
	}
	lateConn, late := watchSocket(t, d, p.ca, own+"?watch=true")
	socket, goodSocket := watchSocket(t, d, p.ca, all+"?watch=true")
	goodStream := watchStream(t, d, own+"?watch=true")
	var healthy sync.WaitGroup
	for _, resp := range []*http.Response{goodSocket, goodStream} {
		healthy.Go(func() {
			if n, err := follows(resp.Body); err != nil || n < churned*churns {
				t.Errorf("a watch that is read saw %d events of %d: %v", n, churned*churns, err)
			}
		})
	}
	begun := time.Now()
	check(t, churn(k, ns))
	took := time.Since(begun)
	read, err := follows(late.Body)
	// A client that reads again within half a minute receives 410; later the connection is closed.
	if !errors.Is(err, errGone410) && took < 25*time.Second {
		t.Errorf("the late reader received %d events and then: %v", read, err)
	}
	peak := d.gauge(t, "process_resident_memory_bytes")
	if grown := (peak - resident) / (1 << 20); grown > 150 {
		t.Errorf("%d watchers that read nothing of %d MB cost %.0f MiB", len(stuck), churned*churns*8/1000, grown)
	}
	healthy.Wait()
	lateConn.Close()
	socket.Close()
	goodStream.Body.Close()
	untilEvery(t, 500*time.Millisecond, func() string { // seldom, because requests disturb other measurements
		g, f := d.gauge(t, "go_goroutines"), d.gauge(t, "process_open_fds")
		if g > goroutines+2 || f > descriptors {
			return fmt.Sprintf("%v goroutines and %v descriptors; there were %v and %v", g, f, goroutines, descriptors)
		}
		return ""
	})
	gone := time.Since(begun)
	for i, body := range stuck {
		if n, err := io.Copy(io.Discard, body); err == nil {
			t.Errorf("watcher %d was cut off and sees a whole answer of %d bytes", i, n)
		}
	}
	t.Logf("%d events of 8 KB in %v beside %d watchers that read nothing; resident %.0f MiB before and %.0f after; "+
		"they had ended after %v; the late reader received %d events and 410",
		churned*churns, took.Round(time.Millisecond), len(stuck), resident/(1<<20), peak/(1<<20),
		gone.Round(time.Millisecond), read)
}
