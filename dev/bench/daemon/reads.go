package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/measure"
)

// Latency is the time that requests took.
type Latency struct {
	P50, P99 time.Duration
	Bytes    int64 // of the last answer
}

// open sends a request and returns the body of the answer, or an error if it is not 200.
func (f *Fleet) open(ctx context.Context, path, accept string, gzip bool) (io.ReadCloser, error) {
	return f.openAs(ctx, f.token, path, accept, gzip)
}

// openAs is open for a user with a token.
func (f *Fleet) openAs(ctx context.Context, token, path, accept string, gzip bool) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, *f.url.Load()+path, nil)
	if err != nil {
		return nil, fmt.Errorf("request to the daemon: %w", err)
	}
	req.Header.Set("Accept", accept)
	if accept == "" {
		req.Header.Set("Accept", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("request to the daemon: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		resp.Body.Close()
		return nil, fmt.Errorf("request %s to the daemon: %s: %s", path, resp.Status, text)
	}
	return resp.Body, nil
}

// read reads an answer to its last byte and returns its length.
func (f *Fleet) read(ctx context.Context, path, accept string, gzip bool) (int64, error) {
	return f.readAs(ctx, f.token, path, accept, gzip)
}

// readAs is read for a user with a token.
func (f *Fleet) readAs(ctx context.Context, token, path, accept string, gzip bool) (int64, error) {
	body, err := f.openAs(ctx, token, path, accept, gzip)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.CopyBuffer(io.Discard, struct{ io.Reader }{body}, make([]byte, 256<<10))
}

// Measure sends n requests one after the other, after a short warm-up.
func (f *Fleet) Measure(ctx context.Context, n int, gzip bool, path func(i int) string) (Latency, error) {
	var l Latency
	took := make([]time.Duration, 0, n)
	for i := range n + n/10 + 1 {
		began := time.Now()
		size, err := f.read(ctx, path(i), "", gzip)
		if err != nil {
			return l, err
		}
		if took = append(took, time.Since(began)); i < n/10+1 {
			took = took[:0]
		}
		l.Bytes = size
	}
	l.P50, l.P99 = measure.Percentile(took, 0.5), measure.Percentile(took, 0.99)
	return l, nil
}

// GetPath returns a path for one pod after the other, over all simulated clusters.
func (f *Fleet) GetPath(i int) string {
	at := i % len(f.sims)
	pod := f.sims[at].Pod(i * 7919 % (f.size.Pods / f.size.Clusters))
	return fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods/%s", simName(at), pod.Namespace, pod.Name)
}

// WorkloadPath returns a path for the pods of one workload after the other, by label.
func (f *Fleet) WorkloadPath(i int) string {
	at := i % len(f.sims)
	pod := f.sims[at].Pod(i * 31 % templates)
	return fmt.Sprintf("/clusters/%s/api/v1/pods?labelSelector=pod-template-hash%%3D%s", simName(at),
		pod.Labels["pod-template-hash"])
}

// AllPath returns a path for all pods of one simulated cluster after the other.
func (f *Fleet) AllPath(i int) string {
	return fmt.Sprintf("/clusters/%s/api/v1/pods", simName(i%len(f.sims)))
}

// RealPath returns a path for all pods of one real cluster after the other.
func (f *Fleet) RealPath(i int) string {
	return fmt.Sprintf("/clusters/%s/api/v1/pods", realName(i%f.size.Real))
}

// PagePath returns a path for a page of the whole fleet.
func (f *Fleet) PagePath(int) string { return "/fleet/api/v1/pods?limit=500" }
