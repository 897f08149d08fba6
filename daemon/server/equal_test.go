package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// pair is a real API server and a mirror of it.
type pair struct {
	real, ours, all string // URLs of the server, its mirror, and the fleet
	client          *http.Client
	fleet           *fleet.Fleet
}

// caughtUp waits until the mirror equals the server.
func (p *pair) caughtUp(t *testing.T) []*fleet.Resource {
	t.Helper()
	resources := p.until(t, "catch up", func(c *fleet.Cluster) bool {
		return c.Health().State == fleet.Ready && slices.ContainsFunc(c.Resources(), func(r *fleet.Resource) bool {
			return r.GVR().Resource == "kites"
		})
	}).Resources()
	for _, r := range resources {
		p.until(t, "have all "+r.GVR().Resource,
			func(*fleet.Cluster) bool { return p.versions(t, r) == mirroredVersions(r) })
	}
	return resources
}

// versions returns the server's objects of a resource and their versions.
func (p *pair) versions(t *testing.T, r *fleet.Resource) string {
	t.Helper()
	_, body := p.ask(t, http.MethodGet, p.real+path(r, ""), lists)
	var all metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatalf("%s: %v: %.200s", r.GVR(), err, body)
	}
	var out []string
	for _, o := range all.Items {
		out = append(out, strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")+" "+o.ResourceVersion)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// mirroredVersions returns the mirror's objects of a resource and their versions.
func mirroredVersions(r *fleet.Resource) string {
	var out []string
	for e := range r.Snapshot().Entries() {
		out = append(out, string(e.Key)+" "+string(e.Version))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// described waits for the cluster's OpenAPI documents, which are read last; the document of the second version is the
// last of them.
func (p *pair) described(t *testing.T) {
	t.Helper()
	p.until(t, "have the OpenAPI documents", func(c *fleet.Cluster) bool {
		_, _, third := c.OpenAPI("/openapi/v3")
		_, _, second := c.OpenAPI("/openapi/v2")
		return third && second
	})
}

// until waits for a condition of the cluster.
func (p *pair) until(t *testing.T, what string, is func(*fleet.Cluster) bool) *fleet.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		changed := p.fleet.Changed()
		c, _ := p.fleet.Cluster(mirrored)
		if is(c) {
			return c
		}
		tick := time.NewTimer(100 * time.Millisecond)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the cluster does not %s: %+v", what, c.Health())
		}
		tick.Stop()
	}
}

func path(r *fleet.Resource, namespace string) string {
	gvr := r.GVR()
	out := "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		out = "/api/" + gvr.Version
	}
	if namespace != "" {
		out += "/namespaces/" + namespace
	}
	return out + "/" + gvr.Resource
}

// ask sends a request and returns the status and content type, and the body.
func (p *pair) ask(t *testing.T, method, url, accept string) (head, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	r.Header.Set("User-Agent", "test")
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	head = fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Content-Type"))
	if warnings := resp.Header.Values("Warning"); len(warnings) > 0 {
		head += fmt.Sprint(" ", warnings)
	}
	return head, string(b)
}

// What may differ between the answers of two servers about the same state, and nothing else does:
// the version of a list and the token of its next page; when bookmarks come, and what they have besides a version;
// ages in the cells of a table, which are of another moment; and an annotation that the server hides in tables of
// DaemonSets. Watches of tables of APIServices are not compared: they have their head on every line.
var normal = []struct {
	has  string // in every text that find matches
	find *regexp.Regexp
	with string
}{
	{`"resourceVersion":"`,
		regexp.MustCompile(`^(\{"kind":"[^"]+","apiVersion":"[^"]+","metadata":\{)"resourceVersion":"\d+"`),
		`$1"resourceVersion":"V"`},
	{`"continue":"`, regexp.MustCompile(`("continue":")[^"]+(")`), `$1 C $2`},
	{`List","metadata":{`, regexp.MustCompile(`("kind":"[^"]+List","metadata":\{.*"resourceVersion":")\d+("\}\}\n)$`),
		`$1 V $2`},
	{"BOOKMARK", regexp.MustCompile(`(?m)^\{"type":"BOOKMARK".*"k8s.io/initial-events-end":"true".*\n`),
		"the initial state ends\n"},
	{"BOOKMARK", regexp.MustCompile(`(?m)^\{"type":"BOOKMARK".*\n`), ""},
	{"deprecated.daemonset", regexp.MustCompile(`"deprecated.daemonset.template.generation":"\d+",?`), ""},
	{`"`, regexp.MustCompile(`"(\d+[ydhms])+"`), `"AGE"`},
	{" ago)", regexp.MustCompile(`\((\d+[ydhms])+ ago\)`), `(AGE ago)`},
}

func normalised(body string) string {
	for _, n := range normal {
		if strings.Contains(body, n.has) {
			body = n.find.ReplaceAllString(body, n.with)
		}
	}
	return body
}

const (
	tables = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metas  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	lists  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// question is a request below the path of a resource.
type question struct {
	name, under, query, accept string
	sorted                     bool // lines may come in any order
}

func questions(r *fleet.Resource, object, namespace string) []question {
	const initialEvents = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" +
		"&allowWatchBookmarks=true&timeoutSeconds=1"
	q := func(s string) string { return url.QueryEscape(s) }
	out := []question{
		{name: "all"},
		{name: "a page", query: "limit=1"},
		{name: "by label", query: "labelSelector=" + q("app=web")},
		{name: "by no label", query: "labelSelector=" + q("!app")},
		{name: "by another label", query: "labelSelector=" + q("app!=web")},
		{name: "by several labels", query: "labelSelector=" + q("app in (web,db),app")},
		{name: "by a bad label", query: "labelSelector=" + q("a b")},
		{name: "by name", query: "fieldSelector=" + q("metadata.name="+object)},
		{name: "by another name", query: "fieldSelector=" + q("metadata.name!="+object)},
		{name: "at any version", query: "resourceVersion=0"},
		{name: "at version 1 or later", query: "resourceVersion=1&resourceVersionMatch=NotOlderThan"},
		{name: "a bad limit", query: "limit=x"},
		{name: "a bad match", query: "resourceVersionMatch=Exact"},
		{name: "an unknown match", query: "resourceVersion=1&resourceVersionMatch=Near"},
		{name: "initial events of a list", query: "sendInitialEvents=true"},
		{name: "a table", accept: tables},
		{name: "a table of a page", accept: tables, query: "limit=1"},
		{name: "a table with objects", accept: tables, query: "includeObject=Object"},
		{name: "a table without objects", accept: tables, query: "includeObject=None"},
		{name: "metadata", accept: lists},
		{name: "metadata by label", accept: lists, query: "labelSelector=" + q("app=web")},
		{name: "one", under: "/" + object},
		{name: "one for people", under: "/" + object, query: "pretty=true"},
		{name: "one as a table", under: "/" + object, accept: tables},
		{name: "the metadata of one", under: "/" + object, accept: metas},
		{name: "none", under: "/there-is-none"},
		{name: "none as a table", under: "/there-is-none", accept: tables},
		{name: "a watch", query: initialEvents, sorted: true},
		{name: "a watch without initial events",
			query: "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"},
		{name: "a watch without initial events from version 0",
			query: "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0&timeoutSeconds=1"},
		{name: "a watch of a table", accept: tables, query: initialEvents, sorted: true},
		{name: "a watch of metadata", accept: metas,
			query: initialEvents + "&labelSelector=" + q("app=web"), sorted: true},
	}
	switch r.GVR().Resource {
	case "deployments", "replicasets", "statefulsets", "replicationcontrollers":
		out = append(out, question{name: "the scale", under: "/" + object + "/scale"},
			question{name: "the scale of none", under: "/there-is-none/scale"},
			question{name: "the scale as a table", under: "/" + object + "/scale", accept: tables},
			question{name: "the metadata of the scale", under: "/" + object + "/scale", accept: metas})
	}
	return out
}

func TestAnswersEqualThoseOfTheRealServer(t *testing.T) {
	p := mirror(t)
	resources := p.caughtUp(t)
	if len(resources) < 50 {
		t.Errorf("only %d resources are compared", len(resources))
	}
	var compared atomic.Int64
	var wg sync.WaitGroup
	for _, r := range resources { // concurrently, because most of the time is spent waiting for watches to end
		wg.Go(func() { compared.Add(int64(p.compare(t, r))) })
	}
	wg.Wait()
	t.Logf("%d answers about %d resources were compared", compared.Load(), len(resources))
}

// compare sends the questions about a resource to both servers, and returns their number.
func (p *pair) compare(t *testing.T, r *fleet.Resource) (n int) {
	name, namespace := "none", ""
	for k := range r.Snapshot().Ordered() {
		namespace, name = k.Split()
		if namespace == "web" || namespace == "db" {
			break
		}
	}
	for _, q := range questions(r, name, namespace) {
		base := path(r, "")
		if q.under != "" && r.Info().Namespaced {
			base = path(r, cmp.Or(namespace, "web"))
		}
		if q.accept == tables && r.GVR().Resource == "apiservices" && q.sorted {
			continue
		}
		ask := base + q.under
		if q.query != "" {
			ask += "?" + q.query
		}
		var wantHead, want, gotHead, got string
		for range 3 { // the server renews its own lease now and then
			var asked sync.WaitGroup // at once, because watches take a second
			asked.Go(func() { wantHead, want = p.ask(t, http.MethodGet, p.real+ask, q.accept) })
			gotHead, got = p.ask(t, http.MethodGet, p.ours+ask, q.accept)
			asked.Wait()
			want, got = normalised(headless(t, want)), normalised(headless(t, got))
			if q.sorted {
				want, got = sortedLines(want), sortedLines(got)
			}
			if wantHead == gotHead && want == got {
				break
			}
		}
		if n++; wantHead != gotHead || want != got {
			at := 0
			for at < len(want) && at < len(got) && want[at] == got[at] {
				at++
			}
			from := max(0, at-80)
			t.Errorf("%s: %s\nreal: %s …%.300s\nours: %s …%.300s", q.name, ask, wantHead,
				want[min(from, len(want)):], gotHead, got[min(from, len(got)):])
		}
	}
	return n
}

var heads = regexp.MustCompile(`"columnDefinitions":\[.*?\],"rows"`)

// headless removes the columns from the first line of a watch of tables, which must have them, so that
// lines can be compared in any order.
func headless(t *testing.T, body string) string {
	if !strings.HasPrefix(body, `{"type":`) || !strings.Contains(body, `"columnDefinitions"`) {
		return body
	}
	first, rest, _ := strings.Cut(body, "\n")
	if !heads.MatchString(first) || heads.MatchString(rest) {
		t.Errorf("the columns are not on the first line alone: %.200s", body)
	}
	return heads.ReplaceAllString(first, `"columnDefinitions":null,"rows"`) + "\n" + rest
}

func sortedLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}
