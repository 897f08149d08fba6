package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/server"
)

// session is a client of a server that answers reads: a daemon, or a server in this process.
type session struct {
	base *url.URL
	http *http.Client
	warn io.Writer
	// warned has the warnings that were shown, because every page of a list repeats them.
	warned   map[string]bool
	held     *[]string  // warnings are added here if it is not nil
	warnLock sync.Mutex // for warned, held and warn: discovery sends concurrent requests
	// only is the name of the only cluster, if there is just one.
	only string
	// namespace is the default namespace.
	namespace string
	// cluster is a client of the cluster itself, for a server in this process.
	cluster *rest.Config
	end     func()
}

func (s *session) close() {
	s.http.CloseIdleConnections()
	if s.end != nil {
		s.end()
	}
}

// bearer adds the token to requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip sends a request with the token.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// CloseIdleConnections closes those of the underlying transport.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// newDaemonSession returns a session with a daemon. It sends no request.
func newDaemonSession(server, tokenFile, caFile string, warn io.Writer) (*session, error) {
	base, err := url.Parse(server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, usagef("the server's URL is not usable; write it as http://127.0.0.1:8090 or https://host:port")
	}
	if base.User != nil {
		return nil, usagef("the server's URL has a user in it; give a token with --token-file instead")
	}
	base.Path, base.RawQuery, base.Fragment = strings.TrimRight(base.Path, "/"), "", ""
	first, _, _ := strings.Cut(strings.TrimPrefix(base.Path, "/"), "/")
	if place, _, _ := strings.Cut(first, "@"); place == "fleet" || place == "clusters" {
		return nil, usagef("leave %s out of the server's URL; commands read the whole fleet, or the cluster of --cluster",
			base.Path)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, usagef("read the certificate authority: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, usagef("%s has no certificate in it; give a file of PEM", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	s := &session{base: base, warn: warn, namespace: "default"}
	s.http = &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if tokenFile == "" {
		return s, nil
	}
	if !s.private() {
		return nil, usagef("a token would be readable on its way to %s; use https", base.Host)
	}
	b, err := readSmall(tokenFile)
	if err != nil {
		return nil, usagef("read the token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, usagef("the file %s of --token-file must have one token on one line, of visible ASCII characters",
			tokenFile)
	}
	s.http.Transport = &bearer{token, transport}
	return s, nil
}

// readSmall reads a file of at most 1 MiB.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("%s is larger than 1 MiB", path)
	}
	return b, err
}

// private reports whether requests are encrypted or stay on this machine.
func (s *session) private() bool {
	if s.base.Scheme == "https" || s.base.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(s.base.Hostname())
	return err == nil && ip.IsLoopback()
}

// answers reports whether a daemon answers within the given time.
func (s *session) answers(ctx context.Context, within time.Duration) bool {
	return s.probe(ctx, within) == nil
}

// probe returns an error if no daemon answers within the given time.
func (s *session) probe(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err := s.open(ctx, http.MethodGet, "/healthz", nil, "", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, 16))
	if err == nil && strings.TrimSpace(string(b)) != "ok" {
		err = errors.New("the answer is not that of a daemon")
	}
	return err
}

// listens reports whether a daemon answers. It is false only if nothing listens at the address: the cluster must not
// take the place of a daemon that is slow.
func (s *session) listens(ctx context.Context) (bool, error) {
	err := s.probe(ctx, answerTime)
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case ok && dial.Op == "dial" && !dial.Timeout():
		return false, nil
	case errors.Is(err, context.DeadlineExceeded):
		return false, unreachable(fmt.Errorf("%s accepts connections and does not answer; try again, or read the cluster "+
			"itself with --context", s.base.Host))
	}
	return false, unreachable(fmt.Errorf("ask %s whether it is a daemon: %w; name one with --server, or read the cluster "+
		"itself with --context", s.base.Host, err))
}

// rest returns a client configuration for a prefix such as /fleet.
func (s *session) rest(prefix string) *rest.Config {
	return &rest.Config{Host: s.base.String() + prefix, QPS: -1, UserAgent: "mirador-cli", WarningHandler: s}
}

// discover returns a discovery client for a prefix.
func (s *session) discover(prefix string) (*discovery.DiscoveryClient, error) {
	return discovery.NewDiscoveryClientForConfigAndClient(s.rest(prefix), s.http)
}

// maxStatus bounds the body of an error.
const maxStatus = 1 << 20

// open sends a request and returns the body of a successful answer.
func (s *session) open(ctx context.Context, method, path string, query url.Values, accept string,
	body io.Reader) (io.ReadCloser, error) {
	u := *s.base
	u.Path += path
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.base.Host, err)
	}
	r.Header.Set("User-Agent", "mirador-cli")
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, unreachableDaemon(err)
	}
	s.warnings(resp.Header)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	if resp.Header.Get("Mirador-Filtered") == "true" {
		s.warning("only what this user may see is shown")
	}
	return resp.Body, nil
}

// warnings shows the warnings of an answer, each once.
func (s *session) warnings(h http.Header) {
	for _, w := range h.Values("Warning") {
		text := w
		if parsed, errs := utilnet.ParseWarningHeaders([]string{w}); len(errs) == 0 && len(parsed) == 1 {
			text = parsed[0].Text
		}
		s.warning(text)
	}
}

// HandleWarningHeader shows a warning of an answer to a Kubernetes client.
func (s *session) HandleWarningHeader(_ int, _, text string) { s.warning(text) }

// warning shows a warning, once.
func (s *session) warning(text string) {
	s.warnLock.Lock()
	defer s.warnLock.Unlock()
	if s.warned[text] {
		return
	}
	if s.warned == nil {
		s.warned = map[string]bool{}
	}
	s.warned[text] = true
	if s.held != nil {
		*s.held = append(*s.held, text)
		return
	}
	fmt.Fprintf(s.warn, "warning: %s\n", clean(text))
}

// perResource matches what is different in warnings about several resources: their names, and times.
var perResource = regexp.MustCompile(`of [a-z0-9.-]+ (of cluster|begins)|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// holdWarnings keeps warnings until the returned function shows them: one for all that differ only in resources and
// times.
func (s *session) holdWarnings() (show func()) {
	s.warnLock.Lock()
	defer s.warnLock.Unlock()
	s.held = &[]string{}
	return func() {
		s.warnLock.Lock()
		defer s.warnLock.Unlock()
		others := map[string]int{}
		var firsts []string
		for _, text := range *s.held {
			alike := perResource.ReplaceAllString(text, "$1")
			if _, known := others[alike]; known {
				others[alike]++
				continue
			}
			others[alike] = 0
			firsts = append(firsts, text)
		}
		s.held = nil
		for _, text := range firsts {
			more := ""
			if n := others[perResource.ReplaceAllString(text, "$1")]; n > 0 {
				more = fmt.Sprintf(" (and %d more like this)", n)
			}
			fmt.Fprintf(s.warn, "warning: %s%s\n", clean(text), more)
		}
	}
}

// dropWarnings drops the warnings that are held.
func (s *session) dropWarnings() {
	s.warnLock.Lock()
	defer s.warnLock.Unlock()
	if s.held != nil {
		*s.held = nil
	}
}

// refusal returns the error of an unsuccessful answer.
func refusal(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	var st metav1.Status
	if resp.StatusCode == http.StatusBadRequest && strings.Contains(string(b), plainToTLS) {
		return errWantsHTTPS
	}
	if json.Unmarshal(b, &st) != nil || st.Kind != "Status" {
		return fmt.Errorf("the server answers %s; is it a mirador daemon?", resp.Status)
	}
	if st.Code == http.StatusUnauthorized {
		return errWantsToken
	}
	return &apierrors.StatusError{ErrStatus: st}
}

// syncTimeout is how long requests to a daemon that is still syncing are retried. It is longer than the grace period
// of a daemon for clusters that cannot be reached at its start.
const syncTimeout = 45 * time.Second

// get reads a document. If the daemon is not ready yet, get retries for a while.
func (s *session) get(ctx context.Context, path string, query url.Values, accept string, into any) error {
	began, said := time.Now(), false
	until := began.Add(syncTimeout)
	for {
		body, err := s.open(ctx, http.MethodGet, path, query, accept, nil)
		if err == nil {
			return decodeBody(body, into)
		}
		if !apierrors.IsServiceUnavailable(err) {
			return err
		}
		seconds, soon := apierrors.SuggestsClientDelay(err)
		wait := time.Duration(max(seconds, 1)) * time.Second
		if !soon || time.Now().Add(wait).After(until) {
			return unreachable(fmt.Errorf("%w; see mirador status", err))
		}
		if !said && time.Since(began)+wait > quietTime {
			said = true
			fmt.Fprintf(s.warn, "the daemon is still reading: %s; waiting up to %s\n", clean(err.Error()), syncTimeout)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// maxAnswer bounds an answer that is read into memory.
const maxAnswer = 1 << 30

var errTooLong = errors.New("the answer is larger than " + strconv.Itoa(maxAnswer>>20) +
	" MiB; ask for less with selectors or --limit")

func decodeBody(body io.ReadCloser, into any) error {
	defer body.Close()
	limited := &io.LimitedReader{R: body, N: maxAnswer}
	if err := json.NewDecoder(limited).Decode(into); err != nil {
		if limited.N <= 0 {
			return errTooLong
		}
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// clustersOnPage is how many clusters are asked for at a time. The report about one may have 100 KB.
const clustersOnPage = 100

// report reads the report about all clusters page by page. If detailed is false, the report about each resource is left
// out.
func (s *session) report(ctx context.Context, detailed bool) (*server.Report, error) {
	query := url.Values{"limit": {strconv.Itoa(clustersOnPage)}}
	if !detailed {
		query.Set("resources", "false")
	}
	all := &server.Report{Clusters: []server.ClusterReport{}}
	for {
		var page server.Report
		if err := s.get(ctx, "/clusters", query, acceptJSON, &page); err != nil {
			return nil, err
		}
		all.Now, all.Memory, all.Disk = page.Now, page.Memory, page.Disk
		all.Clusters = append(all.Clusters, page.Clusters...)
		if page.Continue == "" {
			return all, nil
		}
		query.Set("continue", page.Continue)
	}
}
