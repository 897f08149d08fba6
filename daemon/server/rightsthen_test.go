package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// thenModel are the namespaces of which ann may read the pods, by cluster and namespace; a namespace "*" stands for all.
type thenModel map[[2]string]bool

func (m thenModel) allows(cluster, namespace string) bool {
	return m[[2]string{cluster, namespace}] || m[[2]string{cluster, "*"}]
}

// Over a random history of bindings, a user sees at each moment what the rights of then and those of now allow.
func TestRightsOfThenAreThoseOfTheRolesOfThen(t *testing.T) {
	seed := rand.Uint64()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		d := newRestartingDaemon(t, dir)
		now := thenModel{{"eu", "web"}: true}
		for name, c := range d.clusters {
			for _, namespace := range []string{"web", "shop"} {
				for i := range 3 {
					create(t, c, pod(namespace, fmt.Sprintf("%s-%d", name, i), nil))
				}
			}
		}
		time.Sleep(2 * time.Second)
		type moment struct {
			at   string
			then thenModel
		}
		var history []moment
		for range 12 {
			for range 1 + rnd.IntN(2) {
				right := [2]string{[]string{"eu", "us"}[rnd.IntN(2)], []string{"web", "shop", "*"}[rnd.IntN(3)]}
				b := binding(strings.TrimSuffix(right[1], "*"), "ann", "pods", "ann")
				if now[right] {
					if _, err := d.clusters[right[0]].Delete(b); err != nil {
						t.Fatal(err)
					}
					delete(now, right)
				} else {
					create(t, d.clusters[right[0]], b)
					now[right] = true
				}
			}
			time.Sleep(time.Second)
			then := thenModel{}
			for right := range now {
				then[right] = true
			}
			history = append(history, moment{at(time.Now()), then})
			time.Sleep(time.Second)
		}
		seen := 0
		for _, m := range history {
			both := func(cluster, namespace string) bool {
				return now.allows(cluster, namespace) && m.then.allows(cluster, namespace)
			}
			query := "?rights=then&at=" + m.at
			for _, view := range []string{"/fleet", "/clusters/eu", "/clusters/us"} {
				var want []string
				for _, cluster := range []string{"eu", "us"} {
					if view != "/fleet" && view != "/clusters/"+cluster {
						continue
					}
					for _, namespace := range []string{"shop", "web"} {
						for i := range 3 {
							if both(cluster, namespace) {
								want = append(want, fmt.Sprintf("%s-%d", cluster, i))
							}
						}
					}
				}
				seen += len(want)
				path := view + "/api/v1/pods" + query + "&filtered=true"
				if p, code := d.page("ann", path); len(want) == 0 && code != http.StatusForbidden ||
					!slices.Equal(p.names(), want) {
					t.Fatalf("seed %d: %s: %d %v, want %v", seed, path, code, p.names(), want)
				}
				// What is not visible is not counted, and is on no page.
				var got []string
				next := ""
				for len(want) > 0 {
					p, code := d.page("ann", path+"&limit=2&continue="+next)
					got = append(got, p.names()...)
					if n := p.Metadata.RemainingItemCount; code != http.StatusOK || n != nil && *n != len(want)-len(got) {
						t.Fatalf("seed %d: %s: %d, remaining %v after %v of %v", seed, path, code, n, got, want)
					}
					if next = p.Metadata.Continue; next == "" {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d: the pages of %s have %v, want %v", seed, path, got, want)
				}
			}
			for _, cluster := range []string{"eu", "us"} {
				for _, namespace := range []string{"web", "shop"} {
					want := http.StatusForbidden
					if both(cluster, namespace) {
						want = http.StatusOK
					}
					for _, path := range []string{
						fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods", cluster, namespace),
						fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods/%[1]s-1", cluster, namespace),
						fmt.Sprintf("/fleet/api/v1/namespaces/%s.%s/pods", cluster, namespace),
						fmt.Sprintf("/fleet/api/v1/namespaces/%s.%s/pods/%[1]s-1", cluster, namespace),
					} {
						if code, text := d.get("ann", path+query); code != want {
							t.Fatalf("seed %d: %s: %d, want %d: %s", seed, path+query, code, want, text)
						}
					}
					// An object that did not exist is like one that the user may not see.
					path := fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods/none%s", cluster, namespace, query)
					if code, _ := d.get("ann", path); (code == http.StatusNotFound) != (want == http.StatusOK) {
						t.Fatalf("seed %d: %s: %d", seed, path, code)
					}
				}
			}
		}
		if seen == 0 {
			t.Logf("seed %d: nothing is visible", seed)
		}
		d.checkUnknownThen(t, history[0].at)
	})
}

// names returns the names of the items.
func (p page) names() (all []string) {
	for _, it := range p.Items {
		_, rest, _ := strings.Cut(string(it), `"name":"`)
		name, _, _ := strings.Cut(rest, `"`)
		all = append(all, name)
	}
	return all
}

// checkUnknownThen checks what is refused, and why.
func (d *restartingDaemon) checkUnknownThen(t *testing.T, moment string) {
	t.Helper()
	if _, err := d.clusters["us"].Delete(binding("", "all", "pods", "all")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	const all, eu = "/fleet/api/v1/pods?", "/clusters/eu/api/v1/pods?"
	if p, code := d.page("all", all+"rights=then&at="+moment); code != http.StatusOK || len(p.Items) != 6 {
		t.Errorf("a right that was withdrawn since: %d, %v", code, p.names())
	}
	if p, code := d.page("all", all+"rights=now&at="+moment); code != http.StatusOK || len(p.Items) != 6 {
		t.Errorf("with the rights of now: %d, %v", code, p.names())
	}
	token := d.firstPage("all", eu+"rights=then&at="+moment)
	for _, path := range []string{
		eu + "at=" + moment + "&continue=" + token, // another query
		eu + "rights=then",
		eu + "rights=all&at=" + moment,
		eu + "rights=then&history=true",
	} {
		if code, text := d.get("all", path); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := d.get("all", eu+"rights=then&at="+moment+"&continue="+token); code != http.StatusOK {
		t.Errorf("the same query: %d %s", code, text)
	}
	for _, path := range []string{eu + "rights=then&at=-1000h", eu + "rights=then&filtered=true&at=-1000h",
		all + "rights=then&at=-1000h", "/clusters/eu/api/v1/namespaces/web/pods/eu-1?rights=then&at=-1000h",
		"/fleet/api/v1/namespaces/eu.web/pods/eu-1?rights=then&at=-1000h"} {
		if code, text := d.get("all", path); code != http.StatusForbidden || !strings.Contains(text, "are not known") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}

	// Roles that changed while nobody watched them are not known.
	d.stop()
	version := d.clusters["eu"].Version()
	time.Sleep(time.Minute)
	within := at(time.Now())
	time.Sleep(time.Minute)
	if d.clusters["eu"].Version() != version {
		t.Fatal("the cluster has changed")
	}
	d.start()
	time.Sleep(2 * time.Second)
	if code, text := d.get("all", eu+"rights=then&at="+within); code != http.StatusForbidden ||
		!strings.Contains(text, "were not seen from") {
		t.Errorf("in a gap: %d %s", code, text)
	}
	if code, text := d.get("all", eu+"at="+within); code != http.StatusOK {
		t.Errorf("in a gap, with the rights of now: %d %s", code, text)
	}
}
