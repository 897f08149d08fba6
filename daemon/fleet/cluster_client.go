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
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

const userAgent = "mirador"

// clusterClient sends requests to one cluster. Its informers and all other requests share one
// transport.
type clusterClient struct {
	cluster   string
	base      *url.URL // the address in requests, which the transport may replace
	transport *switchingTransport
	client    *http.Client
	plain     *rest.Config // without credentials, which the transport has
	options   *Options
	onProblem func(informer.Problem)
	conns     *dialer
	redact    *redactor
	log       *slog.Logger

	saved *savedCluster // nil if nothing was restored, or it was discarded
	gate  *gate
	lists *turns // of lists

	mirrors mirrorGroup
	usage   *clusterUsage
	buffers *kube.Allowance
}

// newClusterClient returns a client. It sends no request.
func newClusterClient(name string, cfg *rest.Config, o *Options,
	onProblem func(informer.Problem)) (*clusterClient, error) {
	switch {
	case cfg == nil:
		return nil, errors.New("the config is nil; load one with FromKubeconfig or rest.InClusterConfig")
	case cfg.Host == "":
		return nil, errors.New("the config has no Host; set it to the API server's URL")
	}
	redact := newRedactor(cfg)
	conns := newDialer(cfg.Dial)
	first, err := newEndpoint(cfg, conns, redact, o.id)
	if err != nil {
		return nil, err
	}
	transport := newSwitchingTransport(first)
	l := &clusterClient{cluster: name, base: first.base, transport: transport, conns: conns,
		client: &http.Client{Transport: transport},
		redact: redact, log: redact.logger(o.Logger),
		usage: newClusterUsage(o.Limits, o.usage), buffers: kube.NewAllowance(bufferBytes), options: o,
		onProblem: onProblem, gate: newGate(),
		lists: newTurns(listsOfCluster, slowList, o.lists)}
	// The transport has the config's TLS settings and credentials.
	l.plain = &rest.Config{Host: first.base.String(), UserAgent: userAgent, QPS: -1}
	return l, nil
}

// redirectError reports a redirect.
type redirectError struct{ code int }

// Error returns the text of the error.
func (e *redirectError) Error() string {
	return fmt.Sprintf("the server answered %d, a redirect, which is not followed", e.code)
}

// answer is a server's answer to a request for a document.
type answer struct {
	body        []byte
	contentType string
	etag        string
	unchanged   bool // since the etag that was sent
}

// statusError reports an answer with a status other than 200 and 304.
type statusError struct {
	code   int
	text   string
	future bool // the version in the request is one that the server has not reached
}

// Error returns the status and the server's message.
func (e *statusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the server answered %d: %s", e.code, e.text), ": ")
}

// codeOf returns the HTTP status of a statusError, or 0.
func codeOf(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.code
	}
	return 0
}

// get fetches one document. An answer larger than limit is an error. The text of an error contains nothing of an
// answer.
func (l *clusterClient) get(ctx context.Context, path, accept, etag string, limit int) (answer, error) {
	a, err := l.ask(ctx, path, accept, etag, limit)
	if err != nil {
		return a, l.redact.requestError(l.asking(path), err)
	}
	return a, nil
}

// asking describes a request for error texts.
func (l *clusterClient) asking(path string) string {
	at := l.transport.now.Load().base
	return fmt.Sprintf("get %s from %s", path, at.Scheme+"://"+at.Host)
}

func (l *clusterClient) ask(ctx context.Context, path, accept, etag string, limit int) (answer, error) {
	path, query, _ := strings.Cut(path, "?")
	at := l.base.JoinPath(path)
	at.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return answer{}, withoutURL(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", userAgent)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return answer{}, withoutURL(err)
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
		return answer{}, withoutURL(err)
	}
	if len(body) > limit {
		return answer{}, &tooLargeError{limit}
	}
	return answer{body: body, contentType: resp.Header.Get("Content-Type"), etag: resp.Header.Get("Etag")}, nil
}

// refusal returns the error of an answer other than 200.
func refusal(resp *http.Response) error {
	const maxBody = 16 << 10
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody)) // as much as can be read
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return &statusError{resp.StatusCode, status.Message, isTooLargeVersion(&status)}
	}
	return &statusError{resp.StatusCode, strings.TrimSpace(string(body[:min(len(body), 200)])), false}
}

func isTooLargeVersion(s *metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeResourceVersionTooLarge
	})
}

// withoutURL removes the URL from an error of net/http, because it may contain a secret.
func withoutURL(err error) error {
	for {
		wrapped, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = wrapped.Err
	}
}
