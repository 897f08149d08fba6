package web

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var reference = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

func TestPageRefersOnlyToServedAssets(t *testing.T) {
	h := Handler()
	w := get(t, h, "GET", "/")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("GET /: %d %s", w.Code, w.Header().Get("Content-Type"))
	}
	refs := reference.FindAllStringSubmatch(w.Body.String(), -1)
	if len(refs) < 5 {
		t.Fatalf("the page refers to %d assets, want more", len(refs))
	}
	for _, ref := range refs {
		a := get(t, h, "GET", ref[1])
		if a.Code != http.StatusOK || a.Body.Len() == 0 {
			t.Errorf("GET %s: %d, %d bytes", ref[1], a.Code, a.Body.Len())
		}
		if a.Header().Get("Content-Type") != types[path.Ext(ref[1])] {
			t.Errorf("%s is %q", ref[1], a.Header().Get("Content-Type"))
		}
		if !strings.Contains(a.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s has Cache-Control %q, want forever", ref[1], a.Header().Get("Cache-Control"))
		}
	}
}

func TestEveryImportedModuleIsServed(t *testing.T) {
	h := Handler()
	s := h.(site)
	imported := regexp.MustCompile(`from '\./([a-z]+\.js)'`)
	modules, imports := 0, 0
	for address, f := range s {
		if path.Ext(address) != ".js" {
			continue
		}
		modules++
		for _, m := range imported.FindAllSubmatch(f.body, -1) {
			imports++
			if to := path.Join(path.Dir(address), string(m[1])); s[to] == nil {
				t.Errorf("%s imports %s, which does not exist", path.Base(address), m[1])
			}
		}
	}
	if modules < 8 || imports < 20 {
		t.Errorf("%d modules with %d imports, want more", modules, imports)
	}
}

func TestEveryAnswerCarriesTheHeaders(t *testing.T) {
	h := Handler()
	for _, c := range []struct {
		method, target string
		code           int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"POST", "/", 405}, {"DELETE", "/", 405},
		{"GET", "/nothing", 404}, {"GET", "/assets/", 404}, {"GET", "/assets/0000000000000000/main.js", 404},
		{"GET", "/index.html", 404}, {"GET", "/../handler.go", 404}, {"GET", "/assets/../page/index.html", 404},
	} {
		w := get(t, h, c.method, "http://localhost"+c.target)
		if w.Code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.target, w.Code, c.code)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options":     "nosniff",
			"Referrer-Policy":            "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.target, name, got, want)
			}
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
			"connect-src 'self'",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s %s: the policy lacks %s", c.method, c.target, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s %s: the policy allows too much: %s", c.method, c.target, csp)
		}
	}
}

func TestHeadHasNoBodyAndTheSameHeaders(t *testing.T) {
	h := Handler()
	g, w := get(t, h, "GET", "/"), get(t, h, "HEAD", "/")
	if w.Body.Len() != 0 {
		t.Errorf("HEAD has %d bytes", w.Body.Len())
	}
	for _, name := range []string{"ETag", "Content-Length", "Content-Type", "Cache-Control"} {
		if g.Header().Get(name) == "" || g.Header().Get(name) != w.Header().Get(name) {
			t.Errorf("%s: %q by GET, %q by HEAD", name, g.Header().Get(name), w.Header().Get(name))
		}
	}
}

func TestUnchangedPageIsNotModified(t *testing.T) {
	h := Handler()
	etag := get(t, h, "GET", "/").Header().Get("ETag")
	for _, c := range []struct {
		header string
		code   int
	}{
		{etag, 304}, {"W/" + etag, 304}, {`"other", ` + etag, 304}, {"*", 304}, {`"other"`, 200}, {"", 200},
	} {
		w := get(t, h, "GET", "/", "If-None-Match", c.header)
		if w.Code != c.code {
			t.Errorf("If-None-Match %s: %d, want %d", c.header, w.Code, c.code)
		}
		if c.code == 304 && w.Body.Len() != 0 {
			t.Errorf("If-None-Match %s: a body of %d bytes", c.header, w.Body.Len())
		}
	}
}

func TestAnyChangeGivesEveryAssetAnotherURL(t *testing.T) {
	files := func(css string) fstest.MapFS {
		return fstest.MapFS{
			"index.html": {Data: []byte(`<link href="{{assets}}/a.css">`)},
			"a.css":      {Data: []byte(css)},
			"b.js":       {Data: []byte("export {}")},
			"notes.txt":  {Data: []byte("not for the browser")},
		}
	}
	one, two := mustSite(t, files("a{}")), mustSite(t, files("b{}"))
	for address := range one {
		if address != "/" && two[address] != nil {
			t.Errorf("%s exists in both versions", address)
		}
		if strings.HasSuffix(address, ".txt") {
			t.Errorf("%s is served", address)
		}
	}
	if len(one) != 3 {
		t.Errorf("%d files are served, want 3", len(one))
	}
	if one["/"].etag == two["/"].etag {
		t.Error("the page has the same tag although it names other assets")
	}
}

func mustSite(t *testing.T, files fs.FS) site {
	t.Helper()
	s, err := newSite(files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Data of a cluster must never be parsed as markup, and nothing is requested from other hosts. The browser enforces
// both; this test needs no browser.
func TestPageHasNoInlineCodeAndNoOtherHost(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|` +
		`new Function|DOMParser|setAttribute\('style'`)
	elsewhere := regexp.MustCompile(`(?:https?:)?//[a-z0-9-]+\.[a-z]`)
	inline := regexp.MustCompile(`(?i)<style|\sstyle="|\son[a-z]+="|<script(?:\s[^>]*)?>[^<]|javascript:`)
	for address, f := range Handler().(site) {
		text := strings.ReplaceAll(string(f.body), "http://www.w3.org/2000/svg", "")
		if m := forbidden.FindString(text); m != "" {
			t.Errorf("%s uses %s", address, m)
		}
		if m := elsewhere.FindString(text); m != "" {
			t.Errorf("%s names another host: %s", address, m)
		}
		if address == "/" {
			if m := inline.FindString(text); m != "" {
				t.Errorf("the page has inline code: %s", m)
			}
		}
	}
}

func Example() {
	mux := http.NewServeMux()
	mux.Handle("/", Handler())

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
