package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/store"
)

// A fleet on a disk is restarted, gracefully and as by kill -9 or the loss of power, while its cluster changes, cannot be
// reached, drops its history or is restored from a backup, and its disk fails. Each seed is a random sequence of that.
// Judged is what clients see that watch over the restarts, and what the fleet says about the past:
//
//   - Right after a start, a resource has a state that the cluster had, at most a second older than what was seen before.
//   - No object goes back, none comes back after its deletion, and nothing is announced twice.
//   - In the end clients and mirror have what the cluster has.
//   - What can be resumed is not listed.
//   - The past is what was mirrored then, unless it says that it is in a gap; and it does not say so without a reason.
//
// 10 seeds, 2,000 with MIRADOR_NIGHTLY; SIM_SEED is the first one, and SIM_SEEDS how many there are. A seed always does
// the same, but goroutines may run in another order.
func TestSimulationOfRestarts(t *testing.T) {
	seeds, first := 10, uint64(1)
	if os.Getenv("MIRADOR_NIGHTLY") != "" {
		seeds = 2000
	}
	if n, err := strconv.Atoi(os.Getenv("SIM_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SIM_SEED"), 10, 64); err == nil {
		first = n
	}
	counts := map[string]int{}
	for seed := first; seed < first+uint64(seeds) && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { simulateRestarts(t, seed, counts) })
	}
	t.Logf("%d seeds: %v", seeds, counts)
}

func simulateRestarts(t *testing.T, seed uint64, counts map[string]int) {
	s := newRestarts(t, seed, counts)
	defer s.close()
	s.start()
	for range 60 {
		if s.failed {
			return
		}
		s.act()
	}
	s.settle()
}

// simulatedResources are the resources that change.
var simulatedResources = []schema.GroupVersionResource{podsGVR, podsGVR.GroupVersion().WithResource("configmaps")}

// restarts is one seed.
type restarts struct {
	t       *testing.T
	seed    uint64
	r       *rand.Rand
	counts  map[string]int
	without [5]bool // faults that this seed has fewer of
	notes   []string
	failed  bool

	server   *informertest.Server
	cfg      *rest.Config
	unpipe   func()
	writes   int
	truth    [][]truth     // of each resource: every state that the cluster had, oldest first
	branch   int           // how often the cluster was restored
	frozen   atomic.Bool   // it was restored, and the mirror or the disk may not know: nothing is written
	restored atomic.Uint64 // the version that it was restored to last
	compact  uint64
	mendNet  func()    // nil if the cluster can be reached
	lost     time.Time // when it could not be reached any more

	fs     *vfs.MemFS
	faults *diskFaults
	disk   *disk.Disk
	fleet  *fleet.Fleet
	end    func()
	up     bool
	well   time.Time   // since when the process runs, the cluster is reached and the disk works; zero if not
	calm   []span      // when that was so
	blind  []span      // when the process was down
	rough  []time.Time // when times of changes are not exact: starts, stops and lists
	before span        // the calm time that the last restart ended, as long as the disk has worked since
	saw    time.Time   // the last time at which all was looked at

	resources []*watchedResource
	cluster   *fleet.Cluster
	asked     int // requests before this start
	lists     int // lists until now
}

// span is a time between two others.
type span struct{ from, to time.Time }

func (s span) has(t time.Time, margin time.Duration) bool {
	return !t.Before(s.from.Add(margin)) && !t.After(s.to.Add(-margin))
}

// truth is one state of a resource in the cluster.
type truth struct {
	version uint64
	branch  int
	objects map[object.Key]objectState
}

// objectState identifies a state of an object.
type objectState struct {
	uid     string
	version object.Version
	write   string // the annotation that each write changes
}

// watchedResource has the clients of a resource, and what is known of its past.
type watchedResource struct {
	gvr     schema.GroupVersionResource
	clients []*watchClient
	moments []moment
	seen    []seenVersion // what the mirror had at times in which all was well
}

type moment struct {
	at      time.Time
	objects map[object.Key]objectState
}

type seenVersion struct {
	at      time.Time
	version object.Version
	branch  int
}

// diskFaults lets operations of the file system fail, and takes what a crash would leave.
type diskFaults struct {
	mu     sync.Mutex
	fs     *vfs.MemFS
	r      *rand.Rand
	fail   int // how many of the next operations fail
	err    error
	failed time.Time // when an operation failed last
	crash  int       // the operation before which the crash is taken; 0 for none
	left   *vfs.MemFS
}

// MaybeError is part of errorfs.Injector.
func (f *diskFaults) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crash > 0 {
		if f.crash--; f.crash == 0 {
			f.left = f.clone()
		}
	}
	if f.fail > 0 {
		f.fail--
		f.failed = time.Now()
		return f.err
	}
	return nil
}

// String is part of errorfs.Injector.
func (f *diskFaults) String() string { return "faults of a simulated disk" }

// clone returns what a crash would leave now.
func (f *diskFaults) clone() *vfs.MemFS {
	kept := f.r.IntN(101)
	if f.r.IntN(2) == 0 {
		kept = 0 // nothing that was not synced
	}
	return f.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: f.r})
}

// set changes the faults.
func (f *diskFaults) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func newRestarts(t *testing.T, seed uint64, counts map[string]int) *restarts {
	s := &restarts{t: t, seed: seed, counts: counts, r: rand.New(rand.NewPCG(seed, 0xf1ee7)), fs: vfs.NewCrashableMem(),
		server: informertest.NewServer(informertest.BookmarkEvery(time.Minute))}
	s.cfg, s.unpipe = informertest.Pipe(s.server)
	// A watch from a version that a restored cluster has not reached is silent for ever in the worst case, and nobody can
	// tell. Here it is refused.
	s.server.Inject(informertest.Fault{Verbs: []string{"watch"}, Code: http.StatusGone, Match: func(r *http.Request) bool {
		v := number(object.Version(r.URL.Query().Get("resourceVersion")))
		return s.frozen.Load() && v > s.restored.Load()
	}})
	for i := range s.without {
		s.without[i] = s.r.IntN(2) == 0
	}
	create(t, s.server, namespace("kube-system"), namespace("web"))
	for _, gvr := range simulatedResources {
		w := &watchedResource{gvr: gvr}
		for _, every := range []int{1, 3, 10} {
			w.clients = append(w.clients, &watchClient{name: fmt.Sprintf("%s-%d", gvr.Resource, every), every: every})
		}
		s.resources = append(s.resources, w)
		s.truth = append(s.truth, nil)
		s.know(len(s.resources) - 1)
	}
	return s
}

func (s *restarts) note(format string, args ...any) {
	line := fmt.Sprintf("%12s ", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Round(time.Millisecond))
	s.notes = append(s.notes, line+fmt.Sprintf(format, args...))
}

// fail reports what is wrong, once for each seed, with what happened before.
func (s *restarts) fail(format string, args ...any) {
	if s.failed {
		return
	}
	s.failed = true
	s.t.Errorf("seed %d: %s\n%s\nto reproduce: SIM_SEEDS=1 SIM_SEED=%d go test -run TestSimulationOfRestarts ./daemon/fleet",
		s.seed, fmt.Sprintf(format, args...), strings.Join(s.notes, "\n"), s.seed)
}

func (s *restarts) count(what string) {
	s.counts[what]++
	s.note("%s", what)
}

// know records the state of a resource in the cluster.
func (s *restarts) know(i int) {
	all, err := s.server.List(s.resources[i].gvr)
	if err != nil {
		s.t.Fatal(err)
	}
	now := truth{version: number(s.server.Version()), branch: s.branch, objects: map[object.Key]objectState{}}
	for _, o := range all {
		now.objects[object.NewKey(o.GetNamespace(), o.GetName())] = objectState{string(o.GetUID()),
			object.Version(o.GetResourceVersion()), o.GetAnnotations()["n"]}
	}
	s.truth[i] = append(s.truth[i], now)
}

func number(v object.Version) uint64 {
	n, _ := strconv.ParseUint(string(v), 10, 64)
	return n
}

// existed reports whether a resource had a state at a version, in any branch of the cluster's history.
func (s *restarts) existed(i int, v object.Version, objects map[object.Key]objectState) bool {
	at := number(v)
	all := s.truth[i]
	for n, state := range all {
		last := n+1 == len(all) || all[n+1].branch != state.branch || all[n+1].version > at
		if state.version <= at && last && maps.Equal(state.objects, objects) {
			return true
		}
	}
	return false
}

// start opens the disk and starts a fleet on it.
func (s *restarts) start() {
	s.faults = &diskFaults{fs: s.fs, r: rand.New(rand.NewPCG(s.r.Uint64(), 1)), err: syscall.EIO}
	var err error
	s.disk, err = disk.Open("data", disk.Options{FS: errorfs.Wrap(s.fs, s.faults), Logger: quiet(), Retry: true})
	if err != nil {
		s.t.Fatalf("seed %d: %v", s.seed, err)
	}
	stored, err := s.disk.Resources("eu")
	if err != nil {
		s.fail("read what is on disk: %v", err)
	}
	s.asked = len(s.server.Requests())
	if s.fleet, err = fleet.New(fleet.Options{Disk: s.disk, Include: []string{"pods", "configmaps", "namespaces"},
		WithoutOpenAPI: true, Logger: quiet()}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.disk.Run(ctx) })
	running.Go(func() {
		if err := s.fleet.Run(ctx); err != nil {
			s.t.Errorf("seed %d: run: %v", s.seed, err)
		}
	})
	s.end = func() {
		cancel()
		running.Wait()
		if err := s.disk.Close(); err != nil && s.faults.fail == 0 {
			s.note("close the disk: %v", err)
		}
	}
	if err := s.fleet.Join("eu", s.cfg, fleet.Origin{Kind: fleet.FromFile, Detail: "test"}); err != nil {
		s.t.Fatal(err)
	}
	s.cluster, _ = s.fleet.Cluster("eu")
	s.up = true
	s.note("start")
	down := s.saw
	s.rough = append(s.rough, time.Now())
	if !down.IsZero() {
		s.blind = append(s.blind, span{down, time.Now()})
	}
	s.judgeStart(stored)
}

// judgeStart judges what is served right after a start, and what is asked of the cluster.
func (s *restarts) judgeStart(stored []disk.StoredResource) {
	resumable := map[string]bool{}
	for i, w := range s.resources {
		at := slices.IndexFunc(stored, func(r disk.StoredResource) bool { return r.Resource.Resource == w.gvr.Resource })
		version := object.Version("")
		if at >= 0 {
			version = stored[at].Version
		}
		for _, v := range w.seen {
			written := slices.ContainsFunc(s.calm, func(c span) bool { return c.has(v.at, time.Second) })
			if written && v.branch == s.branch && version.Before(v.version) {
				s.fail("%s is at %q on disk, but was seen at %s more than a second before the end", w.gvr.Resource, version,
					v.version)
			}
		}
		if version == "" {
			continue
		}
		resumable[w.gvr.Resource] = !s.frozen.Load() && number(version) >= s.compact
		if s.mendNet == nil {
			continue
		}
		s.sleep(100 * time.Millisecond)
		r, ok := s.cluster.Resource(w.gvr)
		if !ok || !r.Synced() || !r.Restored() {
			s.fail("%s is on disk, the cluster cannot be reached, and it is not served as restored", w.gvr.Resource)
			return
		}
		if got := contentOf(r.Snapshot()); r.Snapshot().Version() != version || !s.existed(i, version, got) {
			s.fail("%s at %s, restored from version %s, never was like that: %v", w.gvr.Resource, r.Snapshot().Version(),
				version, got)
		}
		s.count("served from disk alone")
	}
	if s.mendNet != nil {
		return
	}
	s.sleep(5 * time.Second)
	for _, q := range lists(s.server.Requests()[s.asked:]) {
		if resumable[q] {
			s.fail("%s are listed, although the watch can be resumed", q)
		}
	}
	if len(resumable) > 0 {
		s.count("resumed")
	}
}

// close ends everything.
func (s *restarts) close() {
	if s.up {
		s.end()
	}
	s.unpipe()
}

func (s *restarts) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// act does one thing, lets time pass, and looks.
func (s *restarts) act() {
	n := s.r.IntN(100)
	if n >= 58 && s.without[n%5] {
		n = 0
	}
	switch {
	case n < 58:
		s.write(1 + s.r.IntN(6))
	case n < 63:
		s.sleep(time.Duration(s.r.Int64N(int64(40 * time.Second))))
	case n < 71:
		s.toggleNet()
	case n < 76:
		s.compaction()
	case n < 80:
		s.restore()
	case n < 86:
		s.count("disk fails")
		s.before = span{}
		s.faults.set(func() {
			s.faults.fail = 1 + s.r.IntN(40)
			s.faults.err = []error{syscall.EIO, syscall.ENOSPC}[s.r.IntN(2)]
		})
	case n < 88:
		s.faults.set(func() { s.faults.fail = 0 })
	default:
		s.restart()
	}
	s.sleep(time.Duration(s.r.Int64N(int64([]time.Duration{time.Millisecond, 400 * time.Millisecond, 5 * time.Second}[s.r.IntN(3)]))))
	s.look()
}

// write makes changes, unless the daemon could not tell them from those of a history that was replaced.
func (s *restarts) write(n int) {
	if s.frozen.Load() {
		return
	}
	for range n {
		s.writes++
		i := min(s.r.IntN(4), 1) ^ 1 // most are of pods
		meta := metav1.ObjectMeta{Namespace: "web", Name: fmt.Sprint("o", s.r.IntN(12)),
			Annotations: map[string]string{"n": fmt.Sprint(s.writes)}, Labels: map[string]string{"app": fmt.Sprint(s.r.IntN(3))}}
		var o runtime.Object = &corev1.Pod{ObjectMeta: meta}
		if i == 1 {
			o = &corev1.ConfigMap{ObjectMeta: meta}
		}
		if s.r.IntN(4) == 0 {
			if _, err := s.server.Delete(o); err != nil {
				continue
			}
		} else if _, err := s.server.Create(o); err != nil {
			if _, err := s.server.Update(o); err != nil {
				s.t.Fatal(err)
			}
		}
		s.know(i)
		s.note("write %s %s: version %s", s.resources[i].gvr.Resource, meta.Name, s.server.Version())
	}
}

func (s *restarts) toggleNet() {
	if s.mendNet != nil {
		s.note("the cluster can be reached")
		s.mendNet()
		s.mendNet = nil
		if now := time.Now(); now.Sub(s.lost) > 25*time.Second {
			s.blind = append(s.blind, span{s.lost, now})
		}
		return
	}
	s.count("cluster unreachable")
	s.lost = time.Now()
	s.mendNet = s.server.Inject(informertest.Fault{Refuse: true})
	s.server.CutWatches()
}

func (s *restarts) compaction() {
	s.count("compaction")
	if err := s.server.Compact(s.server.Version()); err != nil {
		s.t.Fatal(err)
	}
	s.compact = number(s.server.Version())
}

func (s *restarts) restore() {
	now := number(s.server.Version())
	to := max(s.compact, uint64(3), now-min(now, 1+s.r.Uint64N(20))) // the namespaces stay
	if s.frozen.Load() || to >= now {
		return
	}
	s.count("cluster restored")
	s.note("from %d to %d", now, to)
	s.restored.Store(to)
	s.frozen.Store(true)
	if err := s.server.Restore(object.Version(fmt.Sprint(to))); err != nil {
		s.t.Fatal(err)
	}
	s.branch++
	for i := range s.resources {
		s.know(i)
	}
}

// restart ends the process, and starts it again some time later.
func (s *restarts) restart() {
	left := s.fs
	switch s.r.IntN(3) {
	case 0:
		s.count("graceful restart")
	case 1:
		s.count("kill")
		s.faults.set(func() { left = s.faults.clone() })
	case 2:
		s.count("kill during a write")
		s.faults.set(func() { s.faults.crash, s.faults.left = 1+s.r.IntN(30), nil })
		s.sleep(time.Duration(s.r.Int64N(int64(time.Second))))
		s.faults.set(func() {
			if left = s.faults.left; left == nil {
				left = s.faults.clone()
			}
		})
	}
	s.saw = time.Now()
	s.rough = append(s.rough, s.saw)
	s.before = span{s.well, s.saw}
	if s.well.IsZero() {
		s.before = span{}
	}
	s.unwell()
	s.end()
	s.up, s.fs = false, left
	for range s.r.IntN(4) {
		switch n := s.r.IntN(12); {
		case n < 8:
			s.write(1 + s.r.IntN(8))
		case n < 9:
			s.compaction()
		case n < 10:
			s.restore()
		case n < 11:
			s.toggleNet()
		}
		s.sleep(time.Duration(s.r.Int64N(int64([]time.Duration{10 * time.Millisecond, 20 * time.Second}[s.r.IntN(2)]))))
	}
	s.start()
}

// unwell ends a time in which all was well.
func (s *restarts) unwell() {
	if !s.well.IsZero() {
		s.calm = append(s.calm, span{s.well, s.saw})
		s.well = time.Time{}
	}
}

// look lets clients read, records the present and looks at the past.
func (s *restarts) look() {
	s.sleep(time.Millisecond) // changes of one instant are some nanoseconds apart on disk
	now := time.Now()
	well := s.mendNet == nil && !s.frozen.Load() && s.faults.quiet() && s.disk.Health().Err == nil
	settled := s.mendNet == nil && s.faults.quiet() && s.disk.Health().Err == nil
	for i, w := range s.resources {
		r, ok := s.cluster.Resource(w.gvr)
		if !ok || !r.Synced() {
			well, settled = false, false
			continue
		}
		h := r.Health()
		if n := len(lists(s.server.Requests())); n != s.lists {
			s.lists = n
			s.rough = append(s.rough, now)
		}
		snap := r.Snapshot()
		got := contentOf(snap)
		if !s.existed(i, snap.Version(), got) {
			s.fail("the mirror of %s at %s never was like that: %v", w.gvr.Resource, snap.Version(), got)
		}
		well = well && h.Reflector.State == reflector.Streaming && !r.Restored()
		settled = settled && maps.Equal(got, s.truth[i][len(s.truth[i])-1].objects) && !r.Restored() &&
			number(snap.Version()) <= number(s.server.Version())
		w.moments = append(w.moments, moment{now, got})
		for _, c := range w.clients {
			if s.r.IntN(c.every) == 0 {
				c.read(s, w, r, snap)
			}
		}
	}
	if !well {
		s.unwell()
	}
	s.saw = now
	switch {
	case !well:
	case s.well.IsZero():
		s.well = now
	case now.Sub(s.well) > 2*time.Second:
		for _, w := range s.resources {
			r, _ := s.cluster.Resource(w.gvr)
			w.seen = append(w.seen, seenVersion{now, r.Snapshot().Version(), s.branch})
		}
	}
	if s.frozen.Load() && settled {
		s.thaw()
	}
	if s.r.IntN(2) == 0 {
		s.lookBack()
	}
	s.sleep(time.Millisecond)
}

// thaw lets writes go on when the mirror and the disk know that the cluster was restored.
func (s *restarts) thaw() {
	s.sleep(time.Second)
	all, err := s.disk.Resources("eu")
	if err != nil {
		return
	}
	for _, r := range all {
		if number(r.Version) > number(s.server.Version()) {
			return
		}
	}
	s.note("it is known that the cluster was restored")
	s.frozen.Store(false)
}

// quiet reports whether no operation is going to fail, and none has failed for so long that writing goes on.
func (f *diskFaults) quiet() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail == 0 && time.Since(f.failed) > 7*time.Second
}

// lookBack compares moments of the past with what was mirrored then.
func (s *restarts) lookBack() {
	if !s.faults.quiet() || s.disk.Health().Err != nil {
		return
	}
	for _, w := range s.resources {
		r, ok := s.cluster.Resource(w.gvr)
		if !ok || len(w.moments) == 0 {
			continue
		}
		for range 3 {
			m := w.moments[s.r.IntN(len(w.moments))]
			s.checkMoment(w, r, &m)
		}
		if len(s.blind) > 0 && len(s.calm) > 0 {
			down := s.blind[s.r.IntN(len(s.blind))]
			if down.to.Sub(down.from) > 5*time.Second && s.calm[len(s.calm)-1].from.After(down.to) {
				m, err := r.At(down.from.Add(down.to.Sub(down.from)/2), fleet.PastFilter{}, nil)
				if err == nil && m.Gap == nil {
					s.fail("nothing was watched from %s to %s, and %s has no gap there", down.from, down.to, w.gvr.Resource)
				}
			}
		}
	}
}

func (s *restarts) checkMoment(w *watchedResource, r *fleet.Resource, m *moment) {
	for _, t := range s.rough {
		if d := m.at.Sub(t); d > -3*time.Second && d < 3*time.Second {
			return
		}
	}
	if err := r.AwaitPast(s.t.Context(), m.at); err != nil {
		s.fail("wait for the past: %v", err)
		return
	}
	calm := slices.ContainsFunc(s.calm, func(c span) bool { return c.has(m.at, 20*time.Second) })
	got, err := r.At(m.at, fleet.PastFilter{}, nil)
	var past *fleet.PastError
	if errors.As(err, &past) && past.Reason == fleet.BeforeHistory && !calm {
		return
	}
	if err != nil {
		s.fail("%s at %s: %v", w.gvr.Resource, m.at, err)
		return
	}
	if content := contentOf(got.Snapshot); got.Gap == nil && !maps.Equal(content, m.objects) {
		s.fail("%s at %s is %v, was %v", w.gvr.Resource, m.at, content, m.objects)
	}
	if got.Gap != nil && calm {
		s.fail("%s at %s is in the gap %v, and all was well", w.gvr.Resource, m.at, got.Gap)
	}
	s.counts["moments"]++
	if got.Gap != nil {
		s.counts["moments in gaps"]++
	}
}

// contentOf returns the objects of a snapshot.
func contentOf(snap *fleet.Snapshot) map[object.Key]objectState {
	out := map[object.Key]objectState{}
	entries, _ := snap.Page("", 0)
	for _, e := range entries {
		out[e.Key] = stateOf(e)
	}
	return out
}

func stateOf(e *fleet.Entry) objectState {
	_, rest, _ := strings.Cut(string(fleet.Bytes(e, nil)), `"n":"`)
	write, _, _ := strings.Cut(rest, `"`)
	return objectState{e.UID, e.Version, write}
}

// watchClient is a client that watches over restarts: it knows what it has seen, and asks for the changes after that.
type watchClient struct {
	name    string
	every   int // how rarely it reads
	version object.Version
	known   map[object.Key]objectState
	deleted map[string]bool // UIDs
	branch  int
	readAt  time.Time
}

// read reads the changes since the last time.
func (c *watchClient) read(s *restarts, w *watchedResource, r *fleet.Resource, snap *fleet.Snapshot) {
	if s.frozen.Load() {
		return
	}
	behind := snap.Version().Before(c.version)
	if c.known == nil || c.branch != s.branch && (s.branch > c.branch+1 || number(c.version) > s.restored.Load()) {
		c.known, c.deleted = map[object.Key]objectState{}, map[string]bool{}
		c.take(s, snap)
		return
	}
	if behind {
		return // it waits
	}
	log, err := r.Since(c.version)
	if errors.Is(err, store.ErrGone) {
		s.count(c.name + " has to list")
		listed := slices.Contains(lists(s.server.Requests()[s.asked:]), w.gvr.Resource)
		if !listed && !s.before.from.IsZero() && s.before.has(c.readAt.Add(-3*time.Second), 0) && time.Since(c.readAt) < 8*time.Minute {
			s.fail("client %s does not learn what has changed since %s: %v", c.name, c.version, err)
		}
		c.take(s, snap)
		return
	}
	if err != nil {
		s.fail("client %s: %v", c.name, err)
		return
	}
	for l := range log {
		if l.New == nil {
			was, knows := c.known[l.Key]
			if !knows {
				s.fail("client %s at %s: the deletion of %s, which it does not know", c.name, c.version, l.Key)
			}
			c.deleted[was.uid] = true
			delete(c.known, l.Key)
			continue
		}
		if c.known[l.Key] == stateOf(l.New) {
			s.fail("client %s at %s: %s at %s is announced twice", c.name, c.version, l.Key, l.New.Version)
		}
		c.see(s, l.Key, stateOf(l.New))
	}
	if got := contentOf(snap); !maps.Equal(got, c.known) {
		s.fail("client %s has read from %s to %s and knows %v; the mirror has %v", c.name, c.version, snap.Version(),
			c.known, got)
	}
	c.reached(s, snap)
}

// see is called with a state of an object.
func (c *watchClient) see(s *restarts, key object.Key, now objectState) {
	was, knows := c.known[key]
	switch {
	case c.deleted[now.uid]:
		s.fail("client %s: %s comes back as %v", c.name, key, now)
	case knows && was.uid == now.uid && now.version.Before(was.version):
		s.fail("client %s: %s goes back from %s to %s", c.name, key, was.version, now.version)
	case knows && was.uid != now.uid:
		c.deleted[was.uid] = true
	}
	c.known[key] = now
}

// take reads a whole state.
func (c *watchClient) take(s *restarts, snap *fleet.Snapshot) {
	now := contentOf(snap)
	for key, was := range c.known {
		if _, ok := now[key]; !ok {
			c.deleted[was.uid] = true
			delete(c.known, key)
		}
	}
	for key, state := range now {
		c.see(s, key, state)
	}
	c.reached(s, snap)
}

func (c *watchClient) reached(s *restarts, snap *fleet.Snapshot) {
	if c.branch != s.branch {
		c.deleted = map[string]bool{} // what was deleted may be back
	}
	c.version, c.branch, c.readAt = snap.Version(), s.branch, time.Now()
}

// settle ends all faults. Then everything must be as it is in the cluster.
func (s *restarts) settle() {
	if s.mendNet != nil {
		s.toggleNet()
	}
	s.faults.set(func() { s.faults.fail = 0 })
	s.note("all faults end")
	for range 40 {
		s.sleep(10 * time.Second)
		if s.look(); s.failed || !s.frozen.Load() && !s.well.IsZero() && time.Since(s.well) > 45*time.Second {
			break
		}
	}
	if s.failed {
		return
	}
	if s.well.IsZero() {
		for _, r := range s.cluster.Resources() {
			h := r.Health()
			s.note("%s at %s: %s, restored %t, %v", r.GVR().Resource, r.Snapshot().Version(), h.Reflector.State, r.Restored(),
				h.Reflector.Err)
		}
		s.fail("it is not well again after minutes; the server is at %s, frozen %t; the disk: %+v", s.server.Version(),
			s.frozen.Load(), s.disk.Health())
		return
	}
	for i, w := range s.resources {
		r, _ := s.cluster.Resource(w.gvr)
		snap := r.Snapshot()
		if got := contentOf(snap); !maps.Equal(got, s.truth[i][len(s.truth[i])-1].objects) {
			s.fail("in the end, %s are %v, not as in the cluster", w.gvr.Resource, got)
		}
		for _, c := range w.clients {
			c.read(s, w, r, snap)
		}
	}
	s.unwell()
	for range 10 {
		s.lookBack()
	}
}
