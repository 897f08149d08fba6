package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

const userAgent = "mirador"

// link is the way to one cluster: one transport for its informers and for what is asked
// beside them.
type link struct {
	cluster string
	base    *url.URL // the address that requests are made for
	ways    *switched
	client  *http.Client
	plain   *rest.Config // without credentials: the client has them
	options *Options
	problem func(informer.Problem)
	conns   *dialer
	hide    *hider
	log     *slog.Logger

	crew    crew
	ledger  *ledger
	buffers *kube.Allowance
}

// newLink makes the way to a cluster. Nothing is sent.
func newLink(name string, cfg *rest.Config, o *Options, onProblem func(informer.Problem)) (*link, error) {
	switch {
	case cfg == nil:
		return nil, errors.New("the config is nil; load one with FromKubeconfig or rest.InClusterConfig")
	case cfg.Host == "":
		return nil, errors.New("the config has no Host; set it to the API server's URL")
	}
	hide := newHider(cfg)
	conns := newDialer(cfg.Dial)
	first, err := newWay(cfg, conns, hide, o.id)
	if err != nil {
		return nil, err
	}
	ways := newSwitched(first)
	l := &link{cluster: name, base: first.base, ways: ways, conns: conns, client: &http.Client{Transport: ways},
		hide: hide, log: hide.logger(o.Logger),
		ledger: newLedger(o.Limits), buffers: kube.NewAllowance(bufferBytes), options: o, problem: onProblem}
	// Whatever the config says of TLS and credentials is in the transport now.
	l.plain = &rest.Config{Host: first.base.String(), UserAgent: userAgent, QPS: -1}
	return l, nil
}

// redirectError is an answer that points elsewhere.
type redirectError struct{ code int }

// Error says so.
func (e *redirectError) Error() string {
	return fmt.Sprintf("the server answered %d, a redirect, which is not followed", e.code)
}

// answer is what a server said to a question beside its resources.
type answer struct {
	body        []byte
	contentType string
	etag        string
	unchanged   bool // since the etag that was sent
}

// statusError is an answer other than 200 and 304.
type statusError struct {
	code int
	text string
}

// Error says what the server said.
func (e *statusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the server answered %d: %s", e.code, e.text), ": ")
}

// codeOf is the HTTP status that an error is about, or 0.
func codeOf(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.code
	}
	return 0
}

// get asks for one document. An answer larger than limit is an error. No error shows anything of an answer.
func (l *link) get(ctx context.Context, path, accept, etag string, limit int) (answer, error) {
	a, err := l.ask(ctx, path, accept, etag, limit)
	if err != nil {
		return a, l.hide.fault(l.asking(path), err)
	}
	return a, nil
}

// asking says what was attempted.
func (l *link) asking(path string) string {
	at := l.ways.now.Load().base
	return fmt.Sprintf("get %s from %s", path, at.Scheme+"://"+at.Host)
}

func (l *link) ask(ctx context.Context, path, accept, etag string, limit int) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base.JoinPath(path).String(), nil)
	if err != nil {
		return answer{}, bare(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", userAgent)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return answer{}, bare(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return answer{unchanged: true, etag: etag}, nil
	case resp.StatusCode != http.StatusOK:
		return answer{}, refusal(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return answer{}, bare(err)
	}
	if len(body) > limit {
		return answer{}, &tooLargeError{limit}
	}
	return answer{body: body, contentType: resp.Header.Get("Content-Type"), etag: resp.Header.Get("Etag")}, nil
}

// refusal makes an error of an answer.
func refusal(resp *http.Response) error {
	const enough = 16 << 10
	body, _ := io.ReadAll(io.LimitReader(resp.Body, enough)) // what can be had of it
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return &statusError{resp.StatusCode, status.Message}
	}
	return &statusError{resp.StatusCode, strings.TrimSpace(string(body[:min(len(body), 200)]))}
}

// bare takes the URL off an error of net/http: there may be a secret in it.
func bare(err error) error {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = wrapped.Err
	}
}
