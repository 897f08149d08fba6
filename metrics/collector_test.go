package metrics_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/mirador-k8s/mirador/fanout"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/metrics"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is a list of health that a test sets.
type board []informer.Health

func (b *board) health() []informer.Health { return *b }

func collect(t *testing.T, b *board) *metrics.Collector {
	t.Helper()
	c, err := metrics.NewCollector(b.health)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func full() informer.Health {
	return informer.Health{
		Name: "eu/pods.v1", Source: source.Description{Cluster: "eu", Resource: "pods"},
		Synced: true, Objects: 3, Events: 10, Stale: 1, Epoch: 2,
		QueueDeltas: 4, QueueBytes: 512, QueueCoalesced: 5,
		Reflector: reflector.Health{
			State: reflector.Retrying, LastEvent: time.Now().Add(-time.Minute), Err: errors.New("x"),
			Failures: 6, Lists: 7, Watches: 8, Retries: 9, Undecodable: 11,
			Errors: map[source.Reason]uint64{source.Denied: 12, source.Unavailable: 13},
		},
		Problems: map[string]uint64{"transform": 14},
		Handlers: []informer.HandlerHealth{{Name: "printer", Synced: true, Stats: fanout.Stats{
			Backlog: 15, Delivered: 16, Coalesced: 17, Panics: 18,
			Running: 2 * time.Second, OldestWaiting: 3 * time.Second,
		}}},
	}
}

func TestMetricsHaveTheValuesOfHealth(t *testing.T) {
	b := &board{full()}
	const who = `cluster="eu",informer="eu/pods.v1",resource="pods"`
	const whose = `cluster="eu",handler="printer",informer="eu/pods.v1",resource="pods"`
	want := map[string]string{
		"objects":                 "{" + who + "} 3",
		"synced":                  "{" + who + "} 1",
		"epoch":                   "{" + who + "} 2",
		"consecutive_failures":    "{" + who + "} 6",
		"events_total":            "{" + who + "} 10",
		"stale_changes_total":     "{" + who + "} 1",
		"undecodable_total":       "{" + who + "} 11",
		"queue_deltas":            "{" + who + "} 4",
		"queue_bytes":             "{" + who + "} 512",
		"queue_coalesced_total":   "{" + who + "} 5",
		"lists_total":             "{" + who + "} 7",
		"watches_total":           "{" + who + "} 8",
		"retries_total":           "{" + who + "} 9",
		"problems_total":          `{cluster="eu",doing="transform",informer="eu/pods.v1",resource="pods"} 14`,
		"handlers":                "{" + who + "} 1",
		"handler_backlog":         "{" + whose + "} 15",
		"handler_lag_seconds":     "{" + whose + "} 3",
		"handler_running_seconds": "{" + whose + "} 2",
		"handler_synced":          "{" + whose + "} 1",
		"handler_delivered_total": "{" + whose + "} 16",
		"handler_coalesced_total": "{" + whose + "} 17",
		"handler_panics_total":    "{" + whose + "} 18",
	}
	shown := exposed(t, collect(t, b))
	for name, line := range want {
		if line = "mirador_informer_" + name + line; !slices.Contains(shown, line) {
			t.Errorf("missing: %s", line)
		}
	}
	for reason, n := range map[string]int{"denied": 12, "unavailable": 13} {
		line := fmt.Sprintf(`mirador_informer_errors_total{%s,reason="%s",resource="pods"} %d`,
			`cluster="eu",informer="eu/pods.v1"`, reason, n)
		if !slices.Contains(shown, line) {
			t.Errorf("missing: %s", line)
		}
	}
	age := find(t, shown, "mirador_informer_last_event_age_seconds{"+who+"} ")
	if age < 60 || age > 120 {
		t.Errorf("the last-event age is %v s, want a minute", age)
	}
}

// exposed returns the lines of a scrape.
func exposed(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			out = append(out, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), v))
		}
	}
	return out
}

func find(t *testing.T, lines []string, prefix string) (v float64) {
	t.Helper()
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			if _, err := fmt.Sscan(rest, &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no line begins with %s in\n%s", prefix, strings.Join(lines, "\n"))
	return 0
}

func TestNamesAndHelpPassPromlint(t *testing.T) {
	problems, err := testutil.CollectAndLint(collect(t, &board{full()}))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestExactlyOneStateIsSet(t *testing.T) {
	for s := reflector.Starting; s <= reflector.Stopped; s++ {
		h := full()
		h.Reflector.State = s
		shown := exposed(t, collect(t, &board{h}))
		var on, all int
		for _, l := range shown {
			if strings.HasPrefix(l, "mirador_informer_state{") {
				all++
				if strings.HasSuffix(l, " 1") {
					on++
					if !strings.Contains(l, fmt.Sprintf("state=%q", s.String())) {
						t.Errorf("in state %s: %s", s, l)
					}
				}
			}
		}
		if on != 1 || all != int(reflector.Stopped)+1 {
			t.Errorf("in state %s, %d of %d states are set", s, on, all)
		}
	}
}

func TestNoLastEventAgeBeforeTheFirstEvent(t *testing.T) {
	h := full()
	h.Reflector.LastEvent = time.Time{}
	for _, l := range exposed(t, collect(t, &board{h})) {
		if strings.Contains(l, "last_event_age") {
			t.Errorf("exported before the first event: %s", l)
		}
	}
}

func TestCountersOfUnnamedHandlersAreSummedAndNeverDecrease(t *testing.T) {
	handler := func(name string, delivered uint64, backlog int, lag time.Duration) informer.HandlerHealth {
		return informer.HandlerHealth{Name: name, Synced: true,
			Stats: fanout.Stats{Delivered: delivered, Backlog: backlog, OldestWaiting: lag}}
	}
	b := &board{{Name: "pods"}}
	c := collect(t, b)
	const delivered = `mirador_informer_handler_delivered_total{cluster="",handler="unnamed",informer="pods",resource=""} `
	step := func(want float64, hs ...informer.HandlerHealth) []string {
		t.Helper()
		(*b)[0].Handlers = hs
		shown := exposed(t, c)
		if got := find(t, shown, delivered); got != want {
			t.Errorf("delivered = %v, want %v", got, want)
		}
		return shown
	}
	shown := step(30, handler("pods#1", 10, 1, time.Second), handler("pods#2", 20, 2, 5*time.Second))
	if got := find(t, shown, strings.Replace(delivered, "delivered_total", "backlog", 1)); got != 3 {
		t.Errorf("backlog = %v, want the sum", got)
	}
	if got := find(t, shown, strings.Replace(delivered, "delivered_total", "lag_seconds", 1)); got != 5 {
		t.Errorf("lag = %v, want the longest", got)
	}
	step(35, handler("pods#2", 25, 0, 0))                             // pods#1 was removed with a count of 10
	step(36, handler("pods#2", 25, 0, 0), handler("pods#3", 1, 0, 0)) // pods#3 was added
	step(40, handler("pods#2", 4, 0, 0), handler("pods#3", 1, 0, 0))  // pods#2 started again: 10 + 25 + 4 + 1
}

func TestNumberOfSeriesIsBounded(t *testing.T) {
	h := informer.Health{Name: "pods"}
	for i := range 1000 {
		h.Handlers = append(h.Handlers,
			informer.HandlerHealth{Name: fmt.Sprintf("handler %04d", i), Stats: fanout.Stats{Delivered: 1}},
			informer.HandlerHealth{Name: fmt.Sprintf("pods#%d", i), Stats: fanout.Stats{Delivered: 1}})
	}
	shown := exposed(t, collect(t, &board{h}))
	n, sum := 0, 0.0
	for _, l := range shown {
		if strings.HasPrefix(l, "mirador_informer_handler_delivered_total{") {
			n++
			sum += find(t, []string{l}, l[:strings.LastIndex(l, " ")])
		}
	}
	if n > 52 {
		t.Errorf("%d series for 2000 handlers", n)
	}
	if sum != 2000 {
		t.Errorf("the sum is %v deliveries, want 2000", sum)
	}
}

func TestScrapeWorksWithEqualAndInvalidNames(t *testing.T) {
	bad := full()
	bad.Name, bad.Handlers[0].Name = "\xff", "h\xfe"
	b := &board{full(), full(), bad}
	n := 0
	for _, l := range exposed(t, collect(t, b)) {
		if strings.HasPrefix(l, "mirador_informer_objects{") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d informers are exported, want 3", n)
	}
}

func TestNewCollectorRejectsNil(t *testing.T) {
	if _, err := metrics.NewCollector(nil); err == nil || !strings.Contains(err.Error(), "metrics.Of") {
		t.Errorf("NewCollector(nil): %v", err)
	}
}
