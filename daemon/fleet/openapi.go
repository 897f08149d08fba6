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
	// acceptV2 is accepted by every server; newer servers answer with the type newerV2.
	acceptV2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	newerV2  = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

	// The bounds of one document, of all documents compressed, and of their number.
	maxDocument  = 32 << 20
	maxDocuments = 64 << 20
	maxPaths     = 2000

	documentTimeout = 30 * time.Second
	// retryDocuments is the pause before documents that could not be fetched are retried.
	retryDocuments = time.Minute
)

// documents are a cluster's OpenAPI documents, kept compressed. A goroutine of their own
// fetches them, because a server may take long to produce them.
type documents struct {
	client  *clusterClient
	cluster string
	wake    chan struct{}
	settled atomic.Bool // it is known which documents there are

	mu     sync.RWMutex
	byPath map[string]*document
	bytes  int // of all documents, compressed
}

// document is one document. Its content is shared with other clusters that have the same.
type document struct {
	*packedDocument
	contentType string
	mark        string // identifies the content: "hash " and the hash in the index, or the ETag
}

// packedDocument is the content of a document. It never changes.
type packedDocument struct {
	packed []byte
	size   int
}

func newDocuments(l *clusterClient, cluster string) *documents {
	return &documents{client: l, cluster: cluster, wake: make(chan struct{}, 1), byPath: map[string]*document{}}
}

// refreshSoon makes follow refresh the documents.
func (d *documents) refreshSoon() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// follow refreshes the documents after each refreshSoon, until ctx ends.
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
		failed, err := recovered(func() ([]error, error) { return d.refresh(ctx), nil })
		if err != nil {
			failed = append(failed, err)
		}
		if len(failed) == 0 || ctx.Err() != nil {
			continue
		}
		d.client.log.Warn("fleet: get the OpenAPI documents failed", "cluster", d.cluster, "failed", len(failed), "error",
			failed[0], "cause", detail(failed[0]))
		if slices.ContainsFunc(failed, isTemporary) {
			retry = time.After(retryDocuments)
		}
	}
}

// drop releases all documents.
func (d *documents) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byPath, d.bytes = nil, 0
}

// restore sets the documents that the disk has. follow then fetches only those that have changed.
func (d *documents) restore(byPath map[string]*document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, doc := range byPath {
		doc.packedDocument = d.client.options.equal.packedDocuments.add(hashOfContent(doc.packed), doc.packedDocument)
		d.byPath[path] = doc
		d.bytes += len(doc.packed)
	}
}

// forget drops the documents that were restored.
func (d *documents) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byPath, d.bytes = map[string]*document{}, 0
}

// all returns the documents by path.
func (d *documents) all() map[string]*document {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return maps.Clone(d.byPath)
}

// get decompresses a document.
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

// refresh fetches new and changed documents and drops those that no longer exist. A
// document that cannot be fetched keeps its last state and does not affect the others.
func (d *documents) refresh(ctx context.Context) (failed []error) {
	index, first := d.fetch(ctx, openAPIIndex, acceptJSON, "")
	if first != nil {
		failed = append(failed, first)
	} else {
		failed = d.fetchV3(ctx, index)
	}
	second := d.fetchV2(ctx)
	if second != nil {
		failed = append(failed, second)
	}
	if answered(first) && answered(second) {
		d.settled.Store(true)
	}
	return failed
}

// answered reports whether a request succeeded or was refused for good.
func answered(err error) bool { return err == nil || !isTemporary(err) }

// invalidError reports an answer that was received and cannot be used.
type invalidError struct{ error }

func invalidf(format string, args ...any) error { return &invalidError{fmt.Errorf(format, args...)} }

// Unwrap returns the cause.
func (e *invalidError) Unwrap() error { return e.error }

// isTemporary reports whether a request should be retried before the next refresh. A
// refusal, an unknown document and an invalid answer are final.
func isTemporary(err error) bool {
	if _, invalid := errors.AsType[*invalidError](err); invalid {
		return false
	}
	if _, tooLarge := errors.AsType[*tooLargeError](err); tooLarge {
		return false
	}
	code := codeOf(err)
	return code < 400 || code >= 500 || code == http.StatusTooManyRequests
}

// fetchV2 fetches the one document of OpenAPI v2.
func (d *documents) fetchV2(ctx context.Context) error {
	a, err := d.fetch(ctx, openAPIV2, acceptV2, d.mark(openAPIV2))
	if err != nil || a.unchanged {
		return err
	}
	// Clients receive this type, so it is one of the known types and not any text of the server.
	for _, known := range []string{acceptV2, newerV2} {
		if a.contentType == known {
			return d.keep(openAPIV2, a.body, known, a.etag)
		}
	}
	return invalidf("get %s: the answer has the unexpected type %.80q", openAPIV2, a.contentType)
}

// openAPIIndexBody is the index of the documents of OpenAPI v3.
type openAPIIndexBody struct {
	Paths map[string]struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	} `json:"paths"`
}

var pathName = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// fetchV3 fetches the documents of the index, and then stores the index, so that its
// documents exist when it can be read.
func (d *documents) fetchV3(ctx context.Context, index answer) (failed []error) {
	var list openAPIIndexBody
	if err := json.Unmarshal(index.body, &list); err != nil {
		return []error{invalidf("read %s: %w", openAPIIndex, err)}
	}
	if len(list.Paths) > maxPaths {
		return []error{invalidf("read %s: it lists %d documents, more than %d", openAPIIndex, len(list.Paths), maxPaths)}
	}
	for _, name := range slices.Sorted(maps.Keys(list.Paths)) {
		if ctx.Err() != nil {
			return append(failed, ctx.Err())
		}
		if !pathName.MatchString(name) || strings.Contains(name, "..") {
			failed = append(failed, invalidf("read %s: %.80q is not a path", openAPIIndex, name))
			delete(list.Paths, name)
			continue
		}
		if err := d.fetchPart(ctx, openAPIIndex+"/"+name, hashOf(list.Paths[name].ServerRelativeURL)); err != nil {
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

// hashOf returns the hash in a link of the index, or "".
func hashOf(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Query().Get("hash")
}

// fetchPart fetches one document of the index, unless it is unchanged.
func (d *documents) fetchPart(ctx context.Context, path, hash string) error {
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
		return invalidf("get %s: the answer is not JSON", path)
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
	return d.client.get(ctx, path, accept, etag, maxDocument)
}

func (d *documents) mark(path string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if doc := d.byPath[path]; doc != nil {
		return doc.mark
	}
	return ""
}

var errFull = errors.New("the cluster's documents need more memory than allowed")

// packed returns the content of a document, compressed, for all clusters that have it.
func (e *equalAnswers) packed(body []byte) (*packedDocument, error) {
	return e.documents.of(hashOfContent(body), func() (*packedDocument, error) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		fresh := &packedDocument{packed: bytes.Clone(packed.Bytes()), size: len(body)}
		return e.packedDocuments.add(hashOfContent(fresh.packed), fresh), nil // it may have been restored from disk
	})
}

// keep compresses and stores a document.
func (d *documents) keep(path string, body []byte, contentType, mark string) error {
	content, err := d.client.options.equal.packed(body)
	if err != nil {
		return fmt.Errorf("compress %s: %w", path, err)
	}
	doc := &document{packedDocument: content, contentType: contentType, mark: mark}
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := d.bytes + len(doc.packed)
	if old := d.byPath[path]; old != nil {
		sum -= len(old.packed)
	}
	if sum > maxDocuments {
		return invalidf("keep %s: %w", path, errFull)
	}
	d.byPath[path], d.bytes = doc, sum
	return nil
}

// prune drops the documents that are no longer wanted.
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
