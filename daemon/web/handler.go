package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed page
var page embed.FS

// policy lets the page load its own files and send requests to its own server, and nothing else. Trusted types make the
// browser refuse a string wherever it would be parsed as markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types " +
	"'none'"

const (
	index     = "index.html"
	assetsDir = "/assets/"
	forever   = "public, max-age=31536000, immutable"
	askAgain  = "no-cache"
)

// types are the content types of the page's files. Files with another extension are not served, so that a content type
// never depends on the content or on the machine.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is a complete answer.
type file struct {
	body  []byte
	kind  string
	etag  string
	cache string
}

// site has the answers of the page by path. It never changes.
type site map[string]*file

// Handler serves the page at "/" and its assets below "/assets/". Everything else is 404, so it can be the fallback of
// a mux.
func Handler() http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	s, err := newSite(files)
	if err != nil {
		panic(err) // embedded files cannot fail to be read
	}
	return s
}

// newSite reads all files. The hash in the URLs of the assets covers all of them, because modules import each other by
// names without a hash.
func newSite(files fs.FS) (site, error) {
	bodies := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		bodies[name], err = fs.ReadFile(files, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		all.Write([]byte(name + "\x00" + strconv.Itoa(len(bodies[name])) + "\x00"))
		all.Write(bodies[name])
	}
	root := assetsDir + hex.EncodeToString(all.Sum(nil))[:16]
	s := site{}
	for name, body := range bodies {
		if name == index {
			s["/"] = newFile(index, []byte(strings.ReplaceAll(string(body), "{{assets}}", root)), askAgain)
			continue
		}
		s[root+"/"+name] = newFile(name, body, forever)
	}
	return s, nil
}

func newFile(name string, body []byte, cache string) *file {
	sum := sha256.Sum256(body)
	return &file{body: body, kind: types[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:12]) + `"`, cache: cache}
}

// ServeHTTP answers from memory.
func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	protect(h)
	f := s[r.URL.Path]
	if f == nil {
		http.Error(w, "there is no such page; the page is at /, the API is at /clusters and /fleet", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the page can only be read", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", f.cache)
	h.Set("ETag", f.etag)
	if matches(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.body) // an error means that the client is gone
	}
}

// protect sets the security headers, which every answer has, also an error.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// matches reports whether an If-None-Match header has an ETag. It uses weak comparison.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}
