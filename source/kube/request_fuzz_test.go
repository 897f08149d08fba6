package kube

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// A selector that apimachinery can parse is sent to the server unchanged; any other is refused before a request is
// sent.
func FuzzSelectors(f *testing.F) {
	f.Add("app=web,tier!=db", "spec.nodeName=n1")
	f.Add("app in (a, b),!x,y notin (c)", "metadata.name!=a\\,b")
	f.Add("a=\x00&b", "=")
	f.Add("", "%00?#")
	f.Fuzz(func(t *testing.T, label, field string) {
		var sent url.Values
		s, err := Raw(here, podsGVR, with(labelSelector(label), func(o *Options) { o.FieldSelector = field },
			via(func(r *http.Request) (*http.Response, error) {
				sent = r.URL.Query()
				return answer(r, http.StatusOK, jsonType,
					bytes.NewReader([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))), nil
			})))
		_, labelErr := labels.Parse(label)
		_, fieldErr := fields.ParseSelector(field)
		if (err == nil) != (labelErr == nil && fieldErr == nil) {
			t.Fatalf("taken: %v; apimachinery says %v, %v", err, labelErr, fieldErr)
		}
		if err != nil {
			return
		}
		if _, _, err := listAll(t, s, source.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if sent.Get("labelSelector") != label || sent.Get("fieldSelector") != field {
			t.Fatalf("the server was sent %q", sent)
		}
	})
}

// A continue token is sent back to the server unchanged and without the version, and a list whose tokens repeat ends
// with an error. The tokens are the parts of the text between bars, which the server repeats without end.
func FuzzContinueTokens(f *testing.F) {
	f.Add("abc|def", uint(2))
	f.Add("a|b|a|b", uint(100))
	f.Add("=&%\"\\\x00|é|\xff", uint(3))
	f.Fuzz(func(t *testing.T, text string, pages uint) {
		tokens := bytes.Split([]byte(text), []byte("|"))
		pages %= 200
		var asked []string
		s := typedPods(t, forceJSON, via(func(r *http.Request) (*http.Response, error) {
			q := r.URL.Query()
			asked = append(asked, q.Get("continue"))
			if len(asked) > 1 && (q.Get("resourceVersion") != "" || q.Get("resourceVersionMatch") != "") {
				t.Errorf("a token was sent with a version: %q", q)
			}
			if len(asked) > 1000 {
				t.Fatal("the list never ends")
			}
			next := ""
			if uint(len(asked)) <= pages || pages > 100 { // above a hundred there is no last page
				next = string(tokens[(len(asked)-1)%len(tokens)])
			}
			return answer(r, http.StatusOK, jsonType, bytes.NewReader(encodeJSON(t, podList("42", next)))), nil
		}))
		_, _, err := listAll(t, s, source.ListOptions{Match: source.NotOlderThan, Version: "41"})
		if err != nil {
			wantReason(t, err, source.Garbled)
		}
		for i, token := range asked[1:] {
			// Text that is no UTF-8 cannot be carried by JSON.
			if want := string(bytes.ToValidUTF8(tokens[i%len(tokens)], []byte("\ufffd"))); token != want &&
				bytes.Equal(tokens[i%len(tokens)], []byte(want)) {
				t.Fatalf("page %d was asked for with %q, want %q", i+2, token, want)
			}
		}
		if repeated := len(asked) > len(slices.Compact(slices.Sorted(slices.Values(asked)))); err == nil && repeated &&
			len(asked) > 4*len(tokens)+4 {
			t.Fatalf("the server was asked for the same pages again and again: %q", asked)
		}
	})
}

// Versions have the same order as apimachinery's.
func FuzzVersionsAsPeer(f *testing.F) {
	f.Add("1", "2")
	f.Add("10", "9")
	f.Add("0", "1")
	f.Add("18446744073709551616", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, ok := object.Version(a).Compare(object.Version(b))
		want, err := resourceversion.CompareResourceVersion(a, b)
		switch {
		case ok && err != nil && a != b:
			t.Fatalf("Compare(%q, %q) = %d; apimachinery: %v", a, b, got, errors.Unwrap(err))
		case !ok && err == nil && a != "0" && b != "0":
			t.Fatalf("Compare(%q, %q) has no order; apimachinery: %d", a, b, want)
		case ok && err == nil && (got < 0) != (want < 0) || ok && err == nil && (got > 0) != (want > 0):
			t.Fatalf("Compare(%q, %q) = %d; apimachinery: %d", a, b, got, want)
		}
	})
}
