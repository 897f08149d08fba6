package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	openAPIIndex = "/openapi/v3"
	openAPIV2    = "/openapi/v2"
	// acceptV2 is what every server knows; newer ones answer by the other name.
	acceptV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	newerV2  = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

	// The bounds of what is kept: one document, all of them compressed, and how many.
	maxDocument  = 32 << 20
	maxDocuments = 64 << 20
	maxPaths     = 2000

	documentTimeout = 30 * time.Second
	// retryDocuments is when documents are asked for again that could not be had.
	retryDocuments = time.Minute
)

// documents are a cluster's OpenAPI documents, kept compressed. They have a goroutine of
// their own: a server takes its time to make them, and nothing waits for them.
type documents struct {
	link    *link
	cluster string
	wake    chan struct{}
	settled atomic.Bool // the cluster has said what there is, at least once

	mu     sync.RWMutex
	byPath map[string]*document
	bytes  int // of all, compressed
}

// document is one of them.
type document struct {
	packed      []byte
	size        int
	contentType string
	mark        string // tells it from a later one: the index's link, or the etag
}

func newDocuments(l *link, cluster string) *documents {
	return &documents{link: l, cluster: cluster, wake: make(chan struct{}, 1), byPath: map[string]*document{}}
}

// again has the documents looked at soon.
func (d *documents) again() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// follow fetches what has changed, whenever it is woken.
func (d *documents) follow(ctx context.Context) {
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-retry:
		}
		retry = nil
		failed, err := contained(func() ([]error, error) { return d.refresh(ctx), nil })
		if err != nil {
			failed = append(failed, err)
		}
		if len(failed) == 0 || ctx.Err() != nil {
			continue
		}
		d.link.log.Warn("fleet: get the OpenAPI documents failed", "cluster", d.cluster, "failed", len(failed), "error",
			failed[0], "cause", detail(failed[0]))
		if slices.ContainsFunc(failed, mayPass) {
			retry = time.After(retryDocuments)
		}
	}
}

// drop lets go of all.
func (d *documents) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byPath, d.bytes = nil, 0
}

// get unpacks a document.
func (d *documents) get(path string) (body []byte, contentType string, ok bool) {
	d.mu.RLock()
	doc := d.byPath[path]
	d.mu.RUnlock()
	if doc == nil {
		return nil, "", false
	}
	r, err := gzip.NewReader(bytes.NewReader(doc.packed))
	if err != nil {
		return nil, "", false
	}
	body = make([]byte, doc.size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, "", false
	}
	return body, doc.contentType, true
}

// refresh fetches what is new or changed, and drops what is gone. What cannot be had
// keeps its last state, and costs the others nothing.
func (d *documents) refresh(ctx context.Context) (failed []error) {
	index, first := d.fetch(ctx, openAPIIndex, acceptJSON, "")
	if first != nil {
		failed = append(failed, first)
	} else {
		failed = d.parts(ctx, index)
	}
	second := d.second(ctx)
	if second != nil {
		failed = append(failed, second)
	}
	if answered(first) && answered(second) {
		d.settled.Store(true)
	}
	return failed
}

// answered reports whether a server has given what it was asked for, or its word that it will not.
func answered(err error) bool { return err == nil || !mayPass(err) }

// mayPass reports whether a failure is worth another try before the next look: a server
// that refuses a document, or does not know it, has said its word.
func mayPass(err error) bool {
	code := codeOf(err)
	return code < 400 || code >= 500 || code == http.StatusTooManyRequests
}

// second fetches the one document of OpenAPI v2.
func (d *documents) second(ctx context.Context) error {
	a, err := d.fetch(ctx, openAPIV2, acceptV2, d.mark(openAPIV2))
	if err != nil || a.unchanged {
		return err
	}
	// The type goes to whoever asks us: it is never the server's word alone.
	for _, known := range []string{acceptV2, newerV2} {
		if a.contentType == known {
			return d.keep(openAPIV2, a.body, known, a.etag)
		}
	}
	return fmt.Errorf("get %s: the answer is of the type %.80q", openAPIV2, a.contentType)
}

// linked is the index of the documents of OpenAPI v3.
type linked struct {
	Paths map[string]struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	} `json:"paths"`
}

var pathName = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// parts fetches the documents of the index, then shows the index: what it names is there.
func (d *documents) parts(ctx context.Context, index answer) (failed []error) {
	var list linked
	if err := json.Unmarshal(index.body, &list); err != nil {
		return []error{fmt.Errorf("read %s: %w", openAPIIndex, err)}
	}
	if len(list.Paths) > maxPaths {
		return []error{fmt.Errorf("read %s: it lists %d documents, more than %d", openAPIIndex, len(list.Paths), maxPaths)}
	}
	for _, name := range slices.Sorted(maps.Keys(list.Paths)) {
		if ctx.Err() != nil {
			return append(failed, ctx.Err())
		}
		if !pathName.MatchString(name) || strings.Contains(name, "..") {
			failed = append(failed, fmt.Errorf("read %s: %.80q is no path", openAPIIndex, name))
			delete(list.Paths, name)
			continue
		}
		if err := d.part(ctx, openAPIIndex+"/"+name, hashOf(list.Paths[name].ServerRelativeURL)); err != nil {
			failed = append(failed, err)
		}
	}
	d.prune(func(path string) bool {
		_, listed := list.Paths[strings.TrimPrefix(path, openAPIIndex+"/")]
		return listed || path == openAPIIndex || path == openAPIV2
	})
	if err := d.keep(openAPIIndex, index.body, acceptJSON, ""); err != nil {
		failed = append(failed, err)
	}
	return failed
}

// hashOf is what the index says of a document's content; "" if it says nothing.
func hashOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Query().Get("hash")
}

// part fetches one document of the index, unless it is known.
func (d *documents) part(ctx context.Context, path, hash string) error {
	mark := d.mark(path)
	if hash != "" && mark == "hash "+hash {
		return nil
	}
	etag := mark
	if strings.HasPrefix(mark, "hash ") {
		etag = ""
	}
	a, err := d.fetch(ctx, path, acceptJSON, etag)
	if err != nil || a.unchanged {
		return err
	}
	if !json.Valid(a.body) {
		return fmt.Errorf("get %s: the answer is no JSON", path)
	}
	next := a.etag
	if hash != "" {
		next = "hash " + hash
	}
	return d.keep(path, a.body, acceptJSON, next)
}

func (d *documents) fetch(ctx context.Context, path, accept, etag string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	return d.link.get(ctx, path, accept, etag, maxDocument)
}

func (d *documents) mark(path string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if doc := d.byPath[path]; doc != nil {
		return doc.mark
	}
	return ""
}

var errFull = errors.New("the cluster's documents take more than is kept of them")

// keep compresses a document and puts it in the place of the old one.
func (d *documents) keep(path string, body []byte, contentType, mark string) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("compress %s: %w", path, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("compress %s: %w", path, err)
	}
	doc := &document{packed: bytes.Clone(packed.Bytes()), size: len(body), contentType: contentType, mark: mark}
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := d.bytes + len(doc.packed)
	if old := d.byPath[path]; old != nil {
		sum -= len(old.packed)
	}
	if sum > maxDocuments {
		return fmt.Errorf("keep %s: %w", path, errFull)
	}
	d.byPath[path], d.bytes = doc, sum
	return nil
}

// prune drops the documents that are not wanted any more.
func (d *documents) prune(wanted func(path string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, doc := range d.byPath {
		if !wanted(path) {
			d.bytes -= len(doc.packed)
			delete(d.byPath, path)
		}
	}
}
