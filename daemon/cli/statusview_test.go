package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// sick is a report of a fleet with every kind of error.
func sick() *server.Report {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	pods := server.ResourceReport{Resource: "pods", State: "streaming", Synced: true, Objects: 12, Events: 30,
		Bytes: 2048, Handlers: 1, LastHeardSeconds: 0.25}
	forbidden := "forbidden: the credentials are not allowed to get, list and watch this (403); give their user the " +
		"rights"
	r := &server.Report{Now: now, Memory: server.Memory{HeapBytes: 3 << 20, RSSBytes: 9 << 20},
		Clusters: []server.ClusterReport{
			{Name: "asia", State: "unreachable", Since: now.Add(-time.Hour),
				Error: "get /api from https://10.0.0.1:6443: the connection was refused; check that the API server runs and " +
					"that its URL in the kubeconfig is right"},
			{Name: "eu", State: "ready", Since: now.Add(-time.Minute), Version: "v1.36.3",
				Totals:    server.ClusterTotals{Mirrored: 1, Synced: 1, Objects: 12, Events: 30, Bytes: 2048},
				Resources: []server.ResourceReport{pods}},
			{Name: "us", State: "degraded", Since: now.Add(-time.Minute), Version: "v1.36.3",
				Totals: server.ClusterTotals{Mirrored: 15, Synced: 1, Objects: 1_000_012, Events: 30, Bytes: 900<<20 + 2048},
				Error:  "13 of 15 resources fail; a0: " + forbidden, Resources: []server.ResourceReport{pods}},
		}}
	us := &r.Clusters[2]
	for i := range 13 {
		us.Resources = append(us.Resources,
			server.ResourceReport{Group: "example.com", Resource: fmt.Sprintf("a%d", i), State: "retrying", Error: forbidden})
	}
	us.Resources = append(us.Resources,
		server.ResourceReport{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings",
			State: "listing", Objects: 1_000_000, Bytes: 900 << 20, LastHeardSeconds: 7200})
	return r
}

func drawn(t *testing.T, c *statusCommand, r *server.Report, terminal bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.draw(&b, r, terminal); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStatusPrintsASummaryAndThenErrors(t *testing.T) {
	want := `
memory: 9.0 MiB resident, 3.0 MiB of heap

CLUSTER   STATE         FOR      SYNCED   OBJECTS   MEMORY      VERSION
asia      unreachable   1h0m0s   0/0      0         0.0 KiB     -
eu        ready         1m0s     1/1      12        2.0 KiB     v1.36.3
us        degraded      1m0s     1/15     1000012   900.0 MiB   v1.36.3

asia is unreachable: get /api from https://10.0.0.1:6443: the connection was refused; check that the
  API server runs and that its URL in the kubeconfig is right

us is degraded: 13 of 15 resources fail; a0: forbidden: the credentials are not allowed to get, list
  and watch this (403); give their user the rights
  13 retrying, not synced: forbidden: the credentials are not allowed to get, list and watch this
    (403); give their user the rights
    a0.example.com, a1.example.com, a2.example.com, a3.example.com, a4.example.com, a5.example.com,
    a6.example.com, a7.example.com, a8.example.com, a9.example.com and 3 more; mirador status
    --cluster us shows all
  1 listing, not synced
    validatingadmissionpolicybindings.admissionregistration.k8s.io
`
	if diff := cmp.Diff(want[1:], drawn(t, &statusCommand{}, sick(), true)); diff != "" {
		t.Error(diff)
	}
}

func TestStatusOfOneClusterShowsEveryResource(t *testing.T) {
	r := sick()
	c := &statusCommand{clusters: []string{"eu"}}
	if err := c.narrow(r); err != nil {
		t.Fatal(err)
	}
	want := `
memory: 9.0 MiB resident, 3.0 MiB of heap

CLUSTER   STATE   FOR    SYNCED   OBJECTS   MEMORY    VERSION
eu        ready   1m0s   1/1      12        2.0 KiB   v1.36.3

RESOURCE OF EU   STATE       HEARD   OBJECTS   MEMORY
pods             streaming   250ms   12        2.0 KiB
`
	if diff := cmp.Diff(want[1:], drawn(t, c, r, true)); diff != "" {
		t.Error(diff)
	}
}

func TestStatusFitsATerminal(t *testing.T) {
	r := sick()
	r.Clusters[1].Name = strings.Repeat("long-name-", 6)
	for _, c := range []*statusCommand{{}, {all: true}} {
		for _, line := range strings.Split(drawn(t, c, r, true), "\n") {
			if n := utf8.RuneCountInString(line); n > statusWidth {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if got := drawn(t, c, r, false); !strings.Contains(got, r.Clusters[1].Name) {
			t.Errorf("a name is shortened although the output is not a terminal:\n%s", got)
		}
	}
	whole := drawn(t, &statusCommand{all: true}, r, true)
	if !strings.Contains(whole, "a12.example.com ") || !strings.Contains(whole, "validatingadmissionpolicy") ||
		!strings.Contains(whole, "…") {
		t.Errorf("--all shows\n%s", whole)
	}
	wide := &statusCommand{}
	wide.form = asWide
	if got := drawn(t, wide, r, true); !strings.Contains(got, "HANDLERS") || !strings.Contains(got, "EVENTS") {
		t.Errorf("-o wide shows\n%s", got)
	}
}

func TestStatusIsRedrawnInPlace(t *testing.T) {
	var b bytes.Buffer
	if err := (&statusCommand{}).redraw(&b, sick()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(drawn(t, &statusCommand{}, sick(), true), "\n")
	if got := b.String(); !strings.HasPrefix(got, "\x1b[H") || !strings.HasSuffix(got, "\x1b[J") ||
		strings.Count(got, "\x1b[K\n") != lines {
		t.Errorf("not drawn in place: %q", got)
	}
}

func TestStatusWithoutClustersNamesTheNextStep(t *testing.T) {
	if got := drawn(t, &statusCommand{}, &server.Report{}, true); !strings.Contains(got,
		"there are no clusters; have one join with mirador clusters join NAME --kubeconfig FILE\n") {
		t.Error(got)
	}
}
