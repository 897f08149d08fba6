package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// resourceRead is a request that a cluster's audit log has.
type resourceRead struct {
	what, path string
	// whole says that it read the whole resource: it is a list, or a watch with an initial state.
	whole, watch bool
	at           time.Time
}

// readsOf returns the lists and watches of a user in the cluster's audit log after a time. What is read in pages, and
// a watch that has ended, is there more than once.
func readsOf(t *testing.T, log, user string, from time.Time) (all []resourceRead) {
	t.Helper()
	f, err := os.Open(log)
	check(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(user)) {
			continue
		}
		var e struct {
			Verb, RequestURI         string
			RequestReceivedTimestamp time.Time
			ImpersonatedUser         struct{ Username string }
		}
		check(t, json.Unmarshal(lines.Bytes(), &e))
		path, query, _ := strings.Cut(e.RequestURI, "?")
		r := resourceRead{what: e.Verb + " " + e.RequestURI, path: path, watch: e.Verb == "watch",
			at: e.RequestReceivedTimestamp}
		r.whole = e.Verb == "list" || strings.Contains(query, "sendInitialEvents=true")
		if e.ImpersonatedUser.Username == user && r.at.After(from) && (r.whole || r.watch) {
			all = append(all, r)
		}
	}
	check(t, lines.Err())
	return all
}

// listed returns those reads that read a whole resource.
func listed(all []resourceRead) (out []resourceRead) {
	for _, r := range all {
		if r.whole {
			out = append(out, r)
		}
	}
	return out
}

var lastCommit = regexp.MustCompile(`(?m)^mirador_disk_last_commit_timestamp_seconds (\S+)$`)

// onDisk waits until the daemon has written its data folder after a time.
func (d *daemon) onDisk(t *testing.T, after time.Time) {
	t.Helper()
	until(t, func() string {
		_, b, err := d.get("/metrics")
		check(t, err)
		m := lastCommit.FindSubmatch(b)
		if m == nil {
			t.Fatalf("no time of the last commit in:\n%s", b)
		}
		seconds, err := strconv.ParseFloat(string(m[1]), 64)
		check(t, err)
		if seconds <= float64(after.UnixMilli())/1000 {
			return "nothing was written to the data folder"
		}
		return ""
	})
}

// A daemon that is killed while a real cluster changes serves what is on disk when it starts again, lists nothing, and
// soon equals the cluster. With MIRADOR_NIGHTLY, it mirrors another cluster, too, whose history is compacted before it
// starts again: there it lists only after it has tried to resume the watch.
func TestDaemonKilledServesFromDiskAndListsNothing(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	real, k := clients(t, cluster)
	ns := cluster.Namespace(t)
	const user = "kept-on-disk"
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "eu.yaml"), kubeconfig(t, cluster, user), 0o600))
	names := []string{"eu"}
	var compacted *testcluster.Cluster
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		compacted = testcluster.StartAnother(t, testcluster.WithoutControllers())
		check(t, os.WriteFile(filepath.Join(folder, "us.yaml"), kubeconfig(t, compacted, user), 0o600))
		names = append(names, "us")
	}
	client := plain(t)
	args := []string{"--listen", "127.0.0.1:0", "--folder", folder, "--data", filepath.Join(t.TempDir(), "data")}

	change := &writer{api: k.CoreV1().ConfigMaps(ns)}
	d := begin(t, client, args...)
	d.ready(t, names...)
	for range 20 {
		check(t, change.step(t.Context()))
	}
	d.onDisk(t, time.Now().Add(time.Second)) // by then every resource is on disk

	// The load goes on until the daemon is mirrored again.
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		for ctx.Err() == nil {
			if err := change.step(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("change: %v", err)
				return
			}
		}
	})
	defer load.Wait()
	defer stop()
	d.kill(t)
	killed := time.Now()
	if compacted != nil {
		compacted.Fault(t, "compact")
	}
	_, err := k.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made-meanwhile"}}, metav1.CreateOptions{})
	check(t, err)

	began := time.Now()
	d = begin(t, client, args...)
	var have objects
	until(t, func() string {
		var err error
		have, _, err = list(client, d.at+"/clusters/eu/api/v1/namespaces/"+ns+"/configmaps")
		if err != nil {
			return err.Error()
		}
		return ""
	})
	t.Logf("%d objects are served %v after the start", len(have), time.Since(began).Round(time.Millisecond))
	if len(have) == 0 {
		t.Error("nothing of what was on disk is served")
	}
	d.ready(t, names...)
	stop()
	load.Wait()
	d.equals(t, "eu", real, cluster.Config().Host)
	if got := listed(readsOf(t, cluster.AuditLog(), user, killed)); len(got) > 0 {
		t.Errorf("after the restart %d resources were listed, such as %s", len(got), got[0].what)
	}
	if got := listed(readsOf(t, cluster.AuditLog(), user, time.Time{})); len(got) == 0 {
		t.Error("the audit log has no list of the first start, so this test proves nothing")
	}
	if compacted == nil {
		return
	}
	other, _ := clients(t, compacted)
	until(t, func() string { // a resource is ready while it is restored, and listed later
		all := readsOf(t, compacted.AuditLog(), user, killed)
		if len(listed(all)) == 0 {
			return "after the compaction nothing was listed"
		}
		for _, list := range listed(all) {
			if !slices.ContainsFunc(all, func(w resourceRead) bool {
				return w.path == list.path && w.watch && !w.whole && w.at.Before(list.at)
			}) {
				t.Fatalf("%s came before a watch from the version on disk", list.what)
			}
		}
		return ""
	})
	d.equals(t, "us", other, compacted.Config().Host)
}
