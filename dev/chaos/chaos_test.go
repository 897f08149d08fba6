package chaos

import (
	"bytes"
	"context"
	"encoding/pem"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/dev/testcluster"
	"github.com/mirador-k8s/mirador/reflector"
)

var minutes = flag.Float64("minutes", 0,
	"how many minutes TestChaos runs, with default timeouts; 0: each fault once, with short timeouts")

var only = flag.String("fault", "", "inject only the faults whose name contains this")

// tolerated is how many times client-go's number of requests ours may send.
const tolerated = 1.2

// caReload is how often client-go's transport checks a CA file.
const caReload = 5 * time.Minute

// row is one fault in the table.
type row struct {
	fault        string
	from, to     time.Time
	connections  [2]int
	ours, theirs count
}

type count struct{ lists, watches int }

func (c count) all() int { return c.lists + c.watches }

// short injects each fault once and quickly; long takes its time, with default timeouts.
var (
	short = pace{faults: shortFaults, hold: time.Second, cuts: 2, ping: "1", rotations: 1, bundle: true, sheltered: true}
	long  = pace{faults: longFaults, hold: 10 * time.Second, cuts: 5, rotations: 2,
		backoff: reflector.Backoff{Rare: 20 * time.Second}}
)

func TestChaos(t *testing.T) {
	r := &run{t: t, pace: short}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { r.noGoroutineIsLeft(before) }) // after all other cleanups
	if *minutes > 0 {
		r.pace = long
	}
	if r.pace.ping != "" {
		t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", r.pace.ping)
		t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", r.pace.ping)
	}
	began := time.Now()
	say := func(format string, args ...any) {
		t.Logf("%5.1fs  %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	r.cluster = testcluster.Start(t, testcluster.Nodes(0))
	say("the cluster is up")
	fleetsMade := time.Now()
	r.prepare()
	stop := r.writers.start()
	defer stop()
	r.settle(r.ours, r.theirs)
	say("both fleets have synced")

	r.row("start", began)
	r.lonely.proxy.Freeze(toServer | toClient)
	r.trustBoth()
	for round := 1; round == 1 || time.Since(began).Minutes() < *minutes; round++ {
		for _, f := range r.pace.faults {
			if !strings.Contains(f.name, *only) {
				continue
			}
			r.bring(f)
			say("%s: survived", f.name)
		}
	}
	if followCA := fleetsMade.Add(caReload); *minutes*float64(time.Minute) >= float64(caReload) {
		say("the authority will be replaced when every client has reloaded its CA file, at %s",
			followCA.Format(time.TimeOnly))
		r.last(time.Until(followCA))
		r.bring(fault{"authority replaced", authorityReplaced})
		say("authority replaced: survived")
	}
	stop()
	r.settle(r.ours, r.theirs, r.lonely)
	say("%d changes, of which %d got no answer", r.writers.done.Load(), r.writers.failed.Load())

	r.explainWatches(time.Since(began))
	r.ours.stop()
	r.theirs.stop()
	r.lonely.stop()
	r.judge()
}

// bring injects a fault into both fleets and waits until they have recovered.
//
// Client-go's informers are new for each fault: their backoff is reset only after two quiet minutes, and an informer
// that still waits because of the last fault sends nothing in this one. Ours are the same from beginning to end.
func (r *run) bring(f fault) {
	r.theirs.halt()
	r.theirs.clientGo(r.t)
	r.theirs.start(r.t)
	r.settle(r.ours, r.theirs)
	r.untilWell()
	from := time.Now()
	f.do(r)
	r.settle(r.ours, r.theirs)
	r.row(f.name, from)
}

// prepare sets up rights, a namespace, widgets, the fleets and the writers.
func (r *run) prepare() {
	t, ctx := r.t, r.within()
	t.Helper()
	r.connect()
	_, err := r.client.RbacV1().ClusterRoles().Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", widgets.Group}, Resources: []string{configMaps.Resource, widgets.Resource},
				Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
	check(t, err)
	r.grant()
	r.writers = &writers{client: r.dynamic, ns: r.cluster.Namespace(t), model: map[subject]outcome{}}
	r.createCRD()
	r.writers.served.Store(true)

	r.ours = r.fleet("mirador")
	r.ours.ours(t, r.pace.backoff)
	r.theirs = r.fleet("client-go")
	r.theirs.clientGo(t)
	r.audit = &auditLog{path: r.cluster.AuditLog(), agents: []string{r.ours.agent, r.theirs.agent},
		seen: map[string]bool{}}
	r.lonely = r.fleet("mirador-http1")
	r.lonely.pingless(t)
	for _, f := range []*fleet{r.ours, r.theirs, r.lonely} {
		f.start(t)
		t.Cleanup(func() { f.stop() })
	}
}

// fleet returns a fleet with its own user and credential files.
func (r *run) fleet(user string) *fleet {
	r.t.Helper()
	f := newFiles(r.t)
	replace(r.t, f.ca, firstPEM(r.t, r.cluster.Config().CAData))
	if r.pace.bundle {
		replace(r.t, f.ca, r.cluster.Config().CAData)
	}
	f.renew(r.t, r.within(), r.client, user)
	return newFleet(r.t, user, r.cluster.Config(), f)
}

func firstPEM(t *testing.T, bundle []byte) []byte {
	t.Helper()
	block, rest := pem.Decode(bundle)
	if block == nil || len(bytes.TrimSpace(rest)) == 0 {
		t.Fatal("the cluster has not two authorities")
	}
	return pem.EncodeToMemory(block)
}

// row records a fault from which both fleets have recovered.
func (r *run) row(name string, from time.Time) {
	now := row{fault: name, from: from, to: time.Now()}
	now.connections = [2]int{r.ours.proxy.Accepted(), r.theirs.proxy.Accepted()}
	r.rows = append(r.rows, now)
}

// judge prints the table of requests and checks ours against the limit.
func (r *run) judge() {
	r.t.Helper()
	r.audit.read(r.t)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w,
		"fault\tseconds\tours\tclient-go\tours (list+watch)\tclient-go (list+watch)\tconnections\tclient-go\t")
	line := func(name string, took time.Duration, ours, theirs count, c, d int) {
		fmt.Fprintf(w, "%s\t%.1f\t%d\t%d\t%d+%d\t%d+%d\t%d\t%d\t\n", name, took.Seconds(), ours.all(), theirs.all(),
			ours.lists, ours.watches, theirs.lists, theirs.watches, c, d)
	}
	var ours, theirs count
	var took time.Duration
	connections := [2]int{}
	for i := range r.rows {
		row := &r.rows[i]
		row.ours.lists, row.ours.watches = r.audit.count(r.ours.agent, row.from, row.to)
		row.theirs.lists, row.theirs.watches = r.audit.count(r.theirs.agent, row.from, row.to)
		line(row.fault, row.to.Sub(row.from), row.ours, row.theirs, row.connections[0]-connections[0],
			row.connections[1]-connections[1])
		connections = row.connections
		took += row.to.Sub(row.from)
		ours.lists, ours.watches = ours.lists+row.ours.lists, ours.watches+row.ours.watches
		theirs.lists, theirs.watches = theirs.lists+row.theirs.lists, theirs.watches+row.theirs.watches
	}
	line("all", took, ours, theirs, connections[0], connections[1])
	w.Flush()
	r.t.Logf("requests in the audit log, by fault:\n%s", b.String())
	if theirs.all() == 0 || ours.all() == 0 {
		r.t.Fatal("the audit log has no requests of one of the fleets: nothing was compared")
	}
	if float64(ours.all()) > tolerated*float64(theirs.all()) {
		r.t.Errorf("P11: ours sent %d requests, client-go's %d: more than %.1f times as many", ours.all(),
			theirs.all(), tolerated)
	}
}

// explainWatches checks P11 for our informers: a watch is reopened after it has failed, after a stopping server has
// ended it (twice, if it was reopened before the server stopped), and at its timeout. Objects change all the time, and
// pings detect half-open connections, so no watch is closed because of silence.
func (r *run) explainWatches(ran time.Duration) {
	r.t.Helper()
	for _, m := range r.ours.mirrors {
		h := m.health().Reflector
		most := 1 + uint64(ran/(5*time.Minute)) + 2*uint64(len(r.rows))
		for _, n := range h.Errors {
			most += n
		}
		if h.Silences > 0 || h.Watches > most {
			r.t.Errorf("P11: %s opened %d watches, of which at most %d are explained, and closed %d for silence; errors %v",
				m.name, h.Watches, most, h.Silences, h.Errors)
		}
	}
}

// noGoroutineIsLeft waits until no goroutine runs that was not running before. Client-go ends the goroutines of a
// transport's certificates when the transport is garbage-collected.
func (r *run) noGoroutineIsLeft(before goleak.Option) {
	if r.t.Failed() {
		return // a failed test may leave goroutines
	}
	*r = run{t: r.t}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	until(r.t, ctx, func(context.Context) string {
		runtime.GC()
		if err := goleak.Find(before); err != nil {
			return err.Error()
		}
		return ""
	})
}
