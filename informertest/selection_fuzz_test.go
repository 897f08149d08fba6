package informertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// fuzzedPods returns a server and the pods that it serves.
func fuzzedPods(t testing.TB) (*Server, []*corev1.Pod) {
	s := NewServer()
	var pods []*corev1.Pod
	for i := range 12 {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: []string{"a", "a-b", "b"}[i%3], Name: fmt.Sprintf("p%d", i),
				Labels: map[string]string{"app": []string{"web", "db"}[i%2]}},
			Spec: corev1.PodSpec{NodeName: fmt.Sprintf("n%d", i%4)},
		}
		if i%5 == 0 {
			p.Labels["x"] = ""
		}
		if _, err := s.Create(p); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, p)
	}
	return s, pods
}

// listed lists pods over HTTP and returns the status code and the keys.
func listed(t *testing.T, s *Server, q url.Values) (code int, keys []string, meta metav1.ListMeta) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods?"+q.Encode(), nil)
	r.Header.Set("Accept", "application/json")
	s.ServeHTTP(w, r)
	s.mu.Lock()
	s.requests = nil // the server keeps all requests, and fuzzing sends millions
	s.mu.Unlock()
	if w.Code != http.StatusOK {
		var st metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || int(st.Code) != w.Code || st.Message == "" {
			t.Fatalf("answered %d with %q", w.Code, w.Body)
		}
		return w.Code, nil, st.ListMeta
	}
	var list corev1.PodList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		keys = append(keys, p.Namespace+"/"+p.Name)
	}
	if !slices.IsSorted(keys) {
		t.Fatalf("the list is not sorted: %q", keys)
	}
	return w.Code, keys, list.ListMeta
}

// FuzzSelection checks that the server selects the same objects as apimachinery's selectors, with and without pages.
func FuzzSelection(f *testing.F) {
	f.Add("app=web", "spec.nodeName=n1", byte(2))
	f.Add("app in (web,db),!x", "metadata.name!=p3", byte(1))
	f.Add("x", "metadata.namespace=a,spec.nodeName!=n0", byte(5))
	f.Add("x=,app", "spec.hostNetwork=false", byte(0))
	f.Add("=", "status.phase", byte(3))
	s, pods := fuzzedPods(f)
	f.Fuzz(func(t *testing.T, label, field string, limit byte) {
		q := url.Values{"labelSelector": {label}, "fieldSelector": {field}}
		code, keys, _ := listed(t, s, q)
		want, ok := selected(pods, label, field)
		if ok != (code == http.StatusOK) || !ok && code != http.StatusBadRequest {
			t.Fatalf("answered %d; parsed by apimachinery: %v", code, ok)
		}
		if !ok {
			return
		}
		if !slices.Equal(keys, want) {
			t.Fatalf("selected %q, want %q", keys, want)
		}
		if limit == 0 {
			return
		}
		q.Set("limit", strconv.Itoa(int(limit)))
		var paged []string
		for pages := 0; ; pages++ {
			code, keys, meta := listed(t, s, q)
			if code != http.StatusOK || len(keys) > int(limit) || pages > len(pods) {
				t.Fatalf("page %d: code %d, %d keys", pages, code, len(keys))
			}
			paged = append(paged, keys...)
			if meta.Continue == "" {
				break
			}
			q.Set("continue", meta.Continue)
		}
		if !slices.Equal(paged, want) {
			t.Fatalf("in pages of %d: %q, want %q", limit, paged, want)
		}
	})
}

// selected applies apimachinery's own selectors to the objects. A field by which pods cannot be selected counts as an
// error, like a selector that cannot be parsed.
func selected(pods []*corev1.Pod, label, field string) (keys []string, ok bool) {
	byLabel, err := labels.Parse(label)
	if err != nil {
		return nil, false
	}
	byField, err := fields.ParseSelector(field)
	if err != nil {
		return nil, false
	}
	known := append([]string{"metadata.name", "metadata.namespace"}, selectableFields["pods"]...)
	for _, r := range byField.Requirements() {
		if !slices.Contains(known, r.Field) {
			return nil, false
		}
	}
	for _, p := range pods {
		set := fields.Set{"metadata.name": p.Name, "metadata.namespace": p.Namespace, "spec.nodeName": p.Spec.NodeName,
			"spec.hostNetwork": "false"}
		for _, f := range known {
			set[f] += "" // present, possibly empty
		}
		if byLabel.Matches(labels.Set(p.Labels)) && byField.Matches(set) {
			keys = append(keys, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(keys)
	return keys, true
}

// FuzzContinueToken checks that any text as a token gives a page or an error with a reason, and that a token made by
// the server continues where it should.
func FuzzContinueToken(f *testing.F) {
	s, pods := fuzzedPods(f)
	all, _ := selected(pods, "", "")
	version, err := strconv.ParseInt(string(s.Version()), 10, 64)
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Compact("3"); err != nil {
		f.Fatal(err)
	}
	f.Add("garbage", int64(1), "a/p0", byte(1))
	f.Add(page{APIVersion: pageAPIVersion, Version: version, Start: "a/p3\x00"}.encode(), version, "a-b/p1", byte(2))
	f.Add(page{APIVersion: pageAPIVersion, Version: 2, Start: "a/p3"}.encode(), int64(-1), "zzz", byte(0))
	f.Add(page{APIVersion: pageAPIVersion, Version: 1 << 40, Start: "a/p3"}.encode(), int64(-9), "\x00", byte(0))
	f.Fuzz(func(t *testing.T, token string, at int64, start string, limit byte) {
		q := url.Values{"continue": {token}, "limit": {strconv.Itoa(int(limit))}}
		switch code, keys, _ := listed(t, s, q); code {
		case http.StatusOK, http.StatusBadRequest, http.StatusGone:
			for _, k := range keys {
				if !slices.Contains(all, k) {
					t.Fatalf("the token %q leads to %q", token, keys)
				}
			}
		case http.StatusGatewayTimeout: // a version that the server has not reached
		default:
			t.Fatalf("the token %q was answered with %d", token, code)
		}
		p := page{APIVersion: pageAPIVersion, Version: at, Start: start}
		back, err := decodePage(p.encode())
		if valid := at != 0 && start != ""; valid != (err == nil) || valid && utf8.ValidString(start) && back != p {
			t.Fatalf("%+v was decoded as %+v, %v", p, back, err)
		}
		if at != version && at != -1 || start == "" || back.Start != start {
			return
		}
		from, _ := slices.BinarySearch(all, start)
		code, keys, _ := listed(t, s, url.Values{"continue": {p.encode()}})
		if code != http.StatusOK || !slices.Equal(keys, append([]string(nil), all[from:]...)) {
			t.Fatalf("from %q on: %d, %q, want %q", start, code, keys, all[from:])
		}
	})
}
