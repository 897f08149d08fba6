package query

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/store"
)

func TestTokensAreBoundToTheirRequest(t *testing.T) {
	e := newEngine(t, options{})
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 50, store.Packed).snapshot()}
	first := Request{User: "ann", Group: "g", Version: "v1", Resource: "pods", Namespace: "",
		Scope: "eu", Selection: mustSelect(t, "tier", "spec.priority!=9", "true"), Order: mustOrder(t,
			"metadata.name"), Limit: 5}
	res := mustList(t, e, first, view)
	first.Continue = res.Continue
	for name, change := range map[string]func(*Request){
		"user": func(r *Request) { r.User = "bob" }, "group": func(r *Request) { r.Group = "" },
		"version": func(r *Request) { r.Version = "v2" }, "resource": func(r *Request) { r.Resource = "nodes" },
		"namespace": func(r *Request) { r.Namespace = "x" }, "scope": func(r *Request) { r.Scope = "" },
		"labels": func(r *Request) { r.Selection.Labels = nil },
		"fields": func(r *Request) { r.Selection.Fields = Fields{} }, "where": func(r *Request) { r.Selection.Where = nil },
		"order": func(r *Request) { r.Order = Order{} },
	} {
		other := first
		change(&other)
		if err := wantError(t, e, ErrInvalid, other, view); !strings.Contains(err.Error(), "another request") {
			t.Errorf("another %s gives %v", name, err)
		}
	}
	same := first
	same.Limit = 7
	if got := mustList(t, e, same, view); len(got.Items) != 7 {
		t.Errorf("the same request with another limit gives %d items", len(got.Items))
	}
}

func TestTokenIsInvalidForOtherClusters(t *testing.T) {
	e, pods := newEngine(t, options{}), podStore(t, 50, store.Live).snapshot()
	req := Request{Resource: "pods", Limit: 5}
	req.Continue = mustList(t, e, req, View[*blob]{Cluster: "eu", Snapshot: pods}).Continue
	wantError(t, e, ErrInvalid, req, View[*blob]{Cluster: "us", Snapshot: pods})
	if res := mustList(t, e, req, View[*blob]{Cluster: "us", Snapshot: pods},
		View[*blob]{Cluster: "eu", Snapshot: pods}); res.Items[0].Cluster != "eu" || len(res.Views) != 1 {
		t.Errorf("a cluster that joined is on a later page: %v", names(res))
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	e := newEngine(t, options{})
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 50, store.Live).snapshot()}
	req := Request{Resource: "pods", Limit: 5}
	a, b := mustList(t, e, req, view).Continue, mustList(t, e, req, view).Continue
	if a == b || len(a) != len(b) || len(a) > 32 {
		t.Errorf("two lists have the tokens %q and %q", a, b)
	}
	for _, tok := range []string{"x", a + "A", a[:len(a)-1], strings.Repeat("/", len(a)), "", a[:len(a)-1] + "B"} {
		if req.Continue = tok; tok != "" {
			wantError(t, e, ErrInvalid, req, view)
		}
	}
	other := newEngine(t, options{})
	req.Continue = a
	wantError(t, other, ErrExpired, req, view)
	id, _, _ := readToken(a)
	req.Continue = token(id, 1) // a page that has not been reached yet
	wantError(t, e, ErrExpired, req, view)
	req.Continue, req.CountOnly = a, true
	wantError(t, e, ErrInvalid, req, view)
}

func TestListIsDroppedAfterItsLastPage(t *testing.T) {
	for _, order := range []string{"", "-metadata.name"} {
		e := newEngine(t, options{})
		view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 10, store.Live).snapshot()}
		req := Request{Resource: "pods", Limit: 5, Order: mustOrder(t, order)}
		req.Continue = mustList(t, e, req, view).Continue
		if e.pages.len() != 1 {
			t.Errorf("%d lists are held", e.pages.len())
		}
		if res := mustList(t, e, req, view); res.Continue != "" || res.Remaining != 0 ||
			len(res.Items) != 5 || e.pages.len() != 0 {
			t.Errorf("the last page has the token %q, %d items; %d lists are held", res.Continue, len(res.Items), e.pages.len())
		}
		wantError(t, e, ErrExpired, req, view)
	}
}

func TestOldPagesOfALongListExpire(t *testing.T) {
	e := newEngine(t, options{})
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 50, store.Live).snapshot()}
	req := Request{Resource: "pods", Limit: 1}
	var tokens []string
	for range 30 {
		req.Continue = mustList(t, e, req, view).Continue
		tokens = append(tokens, req.Continue)
	}
	for i, tok := range tokens {
		req.Continue = tok
		if i < 30-keptPages {
			wantError(t, e, ErrExpired, req, view)
		} else if res := mustList(t, e, req, view); i < 29 && res.Continue != tokens[i+1] {
			t.Errorf("page %d, when repeated, is followed by another page", i)
		}
	}
}

func TestListsExpireByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, options{})
		view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 20, store.Live).snapshot()}
		req := Request{Resource: "pods", Limit: 5}
		first := mustList(t, e, req, view).Continue
		time.Sleep(4 * time.Minute)
		second := mustList(t, e, req, view).Continue
		time.Sleep(time.Minute - time.Nanosecond)
		req.Continue = first
		mustList(t, e, req, view) // its age counts from the first page, not from this one
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if e.pages.len() != 1 { // the timer has dropped the list without a request
			t.Errorf("%d lists are held after 5 minutes", e.pages.len())
		}
		wantError(t, e, ErrExpired, req, view)
		req.Continue = second
		mustList(t, e, req, view)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if e.pages.len() != 0 {
			t.Errorf("%d lists are held after 9 minutes", e.pages.len())
		}
		wantError(t, e, ErrExpired, req, view)
	})
}

func TestListsExpireByNumber(t *testing.T) {
	e := newEngine(t, options{maxLists: 3})
	view := View[*blob]{Cluster: "eu", Snapshot: podStore(t, 20, store.Live).snapshot()}
	var tokens []string
	for range 5 {
		tokens = append(tokens, mustList(t, e, Request{Resource: "pods", Limit: 5}, view).Continue)
	}
	if e.pages.len() != 3 {
		t.Errorf("%d lists are held", e.pages.len())
	}
	for i, tok := range tokens {
		req := Request{Resource: "pods", Limit: 5, Continue: tok}
		if i < 2 {
			wantError(t, e, ErrExpired, req, view)
		} else {
			mustList(t, e, req, view)
		}
	}
}

func TestSortedListsAreBoundedTogether(t *testing.T) {
	p := newPages[*blob](1000, time.Hour)
	var tokens []string
	for range 5 {
		tokens = append(tokens, p.keep(nil, &heldList[*blob]{begun: time.Now(),
			sorted: make([]place[*blob], maxPositions/4)},
			position{served: 1}))
	}
	if p.len() != 4 || p.places > maxPositions {
		t.Errorf("%d lists with %d places are held", p.len(), p.places)
	}
	if _, _, err := p.find(tokens[0]); !errors.Is(err, ErrExpired) {
		t.Errorf("the oldest gives %v", err)
	}
	for _, tok := range tokens[1:] {
		h, _, err := p.find(tok)
		if err != nil {
			t.Fatal(err)
		}
		p.drop(h)
		p.drop(h)
	}
	if p.places != 0 || p.timer != nil {
		t.Errorf("%d places are left, the timer is %v", p.places, p.timer)
	}
}
