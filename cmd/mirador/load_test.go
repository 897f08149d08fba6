package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// manyReads are the reads of the load, each question some thirty times: about one in fifty is a watch. With
// MIRADOR_NIGHTLY they are 100,000.
func manyReads() int64 {
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		return 100_000
	}
	return 5_000
}

// asked counts the requests of a user in the cluster's audit log, by verb. A watch has two entries, for its start and
// its end, and counts once. Requests that are not for objects, such as discovery, are omitted: the daemon sends them
// periodically and not because of reads.
func asked(t *testing.T, log, user string, from, to time.Time) map[string]int {
	t.Helper()
	f, err := os.Open(log)
	check(t, err)
	defer f.Close()
	out, seen := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(user)) {
			continue
		}
		var e struct {
			AuditID, Verb            string
			RequestReceivedTimestamp time.Time
			ImpersonatedUser         struct{ Username string }
			ObjectRef                *struct{ Resource string }
		}
		check(t, json.Unmarshal(lines.Bytes(), &e))
		if e.ImpersonatedUser.Username == user && e.ObjectRef != nil && !seen[e.AuditID] &&
			e.RequestReceivedTimestamp.After(from) && e.RequestReceivedTimestamp.Before(to) {
			seen[e.AuditID] = true
			out[e.Verb]++
		}
	}
	check(t, lines.Err())
	return out
}

// read is one request of the load. The cluster does not change, so all answers are equal except for what varies.
type read struct {
	path, accept string
	watch, pages bool // read to the end of the initial state, or of the list

	mu    sync.Mutex
	first string              // the first answer, without what varies
	known map[string]struct{} // answers that equal it
}

// varies matches the parts that differ between two answers about the same state.
var varies = regexp.MustCompile(`"(\d+[ydhms])+"|"resourceVersion":"\d+"`)

// same compares an answer with the first. Most are equal byte for byte, except for their continue token.
func (q *read) same(body []byte) error {
	if at := bytes.Index(body, []byte(`"continue":"`)); at >= 0 {
		at += len(`"continue":"`)
		body = slices.Delete(body, at, at+bytes.IndexByte(body[at:], '"'))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.known[string(body)]; ok {
		return nil
	}
	got := varies.ReplaceAllString(string(body), "")
	if q.known == nil {
		q.first, q.known = got, map[string]struct{}{}
	}
	if q.first != got {
		return fmt.Errorf("%s was answered\n%.300s\nand now is\n%.300s", q.path, q.first, got)
	}
	q.known[string(body)] = struct{}{}
	return nil
}

const (
	asTables = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMetas  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// mixed returns requests of every kind, for one cluster and for the fleet.
func mixed(ns string) []*read {
	var out []*read
	for base, namespace := range map[string]string{"/clusters/eu": ns, "/clusters/us": ns, "/fleet": "eu." + ns} {
		in := base + "/api/v1/namespaces/" + namespace + "/configmaps"
		for i := range 5 {
			out = append(out, &read{path: fmt.Sprintf("%s/cm-%02d", in, i)},
				&read{path: fmt.Sprintf("%s/cm-%02d", in, i), accept: asTables})
		}
		for _, q := range []string{"", "?limit=3", "?limit=1&labelSelector=even%3Dtrue", "?labelSelector=even%3Dtrue",
			"?labelSelector=even+in+(true,false),!none", "?fieldSelector=metadata.name%3Dcm-03",
			"?fieldSelector=data.n%3D4", "?orderBy=data.n&limit=2", "?resourceVersion=0",
			"?where=" + url.QueryEscape("object.data.n == '5' || metadata.name.endsWith('7')")} {
			out = append(out, &read{path: in + q}, &read{path: in + q, accept: asTables}, &read{path: in + q, accept: asMetas})
		}
		name := "default"
		if base == "/fleet" {
			name = "eu.default"
		}
		out = append(out, &read{path: base + "/api/v1/namespaces?fieldSelector=metadata.name%3D" + name},
			&read{path: base + "/api/v1/namespaces/" + name, accept: asTables}, &read{path: base + "/apis/apps/v1/deployments"},
			&read{path: base + "/api/v1/namespaces/" + namespace + "/pods/none"},
			&read{path: base + "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=5", accept: asTables},
			&read{path: base + "/apis"}, &read{path: base + "/api/v1"}, &read{path: base + "/version"})
		for _, accept := range []string{"", asTables, asMetas} {
			out = append(out, &read{path: in + "?limit=4", accept: accept, pages: true},
				&read{path: in + watchWithInitialState + "&timeoutSeconds=20", accept: accept, watch: true})
		}
	}
	return append(out, &read{path: "/readyz"}, &read{path: "/healthz"})
}

// once runs a request once, and returns the number of reads.
func (q *read) once(d *daemon) (reads int64, err error) {
	if !q.pages {
		b, err := q.ask(d, q.path)
		if err != nil {
			return 1, err
		}
		return 1, q.same(b)
	}
	var all []byte
	for token := ""; ; {
		b, err := q.ask(d, q.path+"&continue="+url.QueryEscape(token))
		if reads++; err != nil {
			return reads, err
		}
		m := next.FindSubmatch(b)
		if all = append(all, next.ReplaceAll(b, nil)...); m == nil {
			return reads, q.same(all)
		}
		token = string(m[1])
	}
}

var next = regexp.MustCompile(`"continue":"([^"]+)"`)

// ask sends one request and returns the whole answer.
func (q *read) ask(d *daemon, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.at+path, nil)
	if err != nil {
		return nil, err
	}
	if q.accept != "" {
		r.Header.Set("Accept", q.accept)
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var b []byte
	if q.watch {
		b, err = untilSynced(resp.Body)
		// Only the number is compared: events have no fixed order.
		b = bytes.Repeat([]byte{'\n'}, bytes.Count(b, []byte{'\n'}))
	} else {
		b, err = io.ReadAll(resp.Body)
	}
	want := http.StatusOK
	if strings.HasSuffix(path, "/none") {
		want = http.StatusNotFound
	}
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("answered %d: %.300s", resp.StatusCode, b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// untilSynced reads the initial state of a watch.
func untilSynced(body io.Reader) (all []byte, err error) {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if all = append(all, line...); err != nil {
			return all, err
		}
		if bytes.Contains(line, []byte(`"k8s.io/initial-events-end":"true"`)) {
			return all, nil
		}
	}
}

// Other tests use the cluster at the same time. This daemon has its own user, and the requests have their own
// namespace.
func TestReadsSendNoRequestToTheCluster(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	_, k := clients(t, cluster)
	ns := cluster.Namespace(t)
	for i := range 10 {
		_, err := k.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cm-%02d", i),
				Labels: map[string]string{"even": fmt.Sprint(i%2 == 0)}},
			Data: map[string]string{"n": fmt.Sprint(i)}}, metav1.CreateOptions{})
		check(t, err)
	}
	const user = "mirador-under-load"
	config := filepath.Join(t.TempDir(), "config")
	check(t, os.WriteFile(config, kubeconfig(t, cluster, user, "eu", "us"), 0o600))
	begun := time.Now()
	d := begin(t, plain(t), "--listen", "127.0.0.1:0", "--kubeconfig", config, "--all-contexts")
	d.ready(t, "eu", "us")

	questions := mixed(ns)
	for _, q := range questions {
		_, err := q.once(d)
		check(t, err)
	}
	for _, q := range questions { // the answers must have the objects, or the test proves nothing
		if strings.HasSuffix(q.path, "/configmaps") && q.accept == "" && strings.Count(q.first, `"data":{"n":`) != 10 {
			t.Fatalf("%s is answered %.300s", q.path, q.first)
		}
	}
	// Every watch of the daemon lasts at least 5 minutes, and all are open. So an idle daemon sends no request during
	// the load.
	from := time.Now()
	many := manyReads()
	var turn, reads, failed, watches atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for failed.Load() < 5 && reads.Load() < many {
				i := turn.Add(1)
				q := questions[i%int64(len(questions))]
				if q.watch && i%100 > 30 { // these cost a connection
					q = questions[0]
				}
				if q.watch {
					watches.Add(1)
				}
				n, err := q.once(d)
				if reads.Add(n); err != nil {
					failed.Add(1)
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(from)
	during := asked(t, cluster.AuditLog(), user, from, time.Now())
	before := asked(t, cluster.AuditLog(), user, begun, from)
	t.Logf("%d reads, %d of them watches, of %d kinds took %v; the cluster was asked %v before them and %v during them",
		reads.Load(), watches.Load(), len(questions), took.Round(time.Millisecond), before, during)
	if before["list"]+before["watch"] < 80 {
		t.Errorf("before the load the audit log has %v requests of the daemon: the test reads the wrong log", before)
	}
	for verb, n := range during {
		t.Errorf("%d reads of the mirror sent %d %s to the cluster", reads.Load(), n, verb)
	}
	if took > 4*time.Minute {
		t.Errorf("the load took %v: watches of the daemon may have ended meanwhile, so the count is unreliable", took)
	}
}
