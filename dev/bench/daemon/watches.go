package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
	"github.com/mirador-k8s/mirador/dev/bench/measure"
)

const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// place is a namespace of a simulated cluster.
type place struct {
	cluster   int
	namespace string
}

// plan is the changes to send, and how many of them each watch has to receive.
type plan struct {
	sends []send
	count map[place]int
}

type send struct {
	place  place
	change *feed.Change
}

// prepare makes n changes, spread evenly over a number of namespaces of each simulated cluster.
func (f *Fleet) prepare(n, namespaces int) (*plan, error) {
	p := &plan{count: map[place]int{}}
	var pods []*corev1.Pod
	var of []int
	for c, sim := range f.sims {
		seen := map[string]int{}
		for i := 0; i < templates && len(pods) < (c+1)*namespaces*4; i++ {
			pod := sim.Pod(i)
			if _, known := seen[pod.Namespace]; !known && len(seen) == namespaces || seen[pod.Namespace] == 4 {
				continue
			}
			seen[pod.Namespace]++
			pods, of = append(pods, pod), append(of, c)
		}
		if len(seen) < namespaces {
			return nil, fmt.Errorf("simulated cluster %d has pods in %d namespaces, want %d", c, len(seen), namespaces)
		}
	}
	for i := range n {
		// Consecutive changes are in different clusters; a stride that is coprime to the number of pods visits all.
		at := i * 7919 % len(pods)
		change, next, err := f.sims[of[at]].Prepare(pods[at])
		if err != nil {
			return nil, err
		}
		pods[at] = next
		where := place{of[at], change.Namespace}
		p.sends = append(p.sends, send{where, change})
		p.count[where]++
	}
	return p, nil
}

// heard is when changes reached a watch, in order.
type heard struct {
	where place
	lines []arrival
	err   error
}

type arrival struct {
	version string
	at      time.Duration
}

// Watches is the result of a load of watches.
type Watches struct {
	P50, P99 time.Duration
	// Rate is how many changes were sent per second, Lines how many lines all watches received per second.
	Rate, Lines float64
}

// WatchNamespaces opens ten watches on each of a number of namespaces of every simulated cluster, sends n changes at a
// rate, and returns how long they took to reach each watch. A missing change, or one out of order, is an error.
func (f *Fleet) WatchNamespaces(ctx context.Context, namespaces, n, rate int) (Watches, error) {
	const each = 10
	p, err := f.prepare(n, namespaces)
	if err != nil {
		return Watches{}, err
	}
	var watches []*watch
	for where, count := range p.count {
		for range each {
			path := fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods", simName(where.cluster), where.namespace)
			watches = append(watches, &watch{path: path, want: count, heard: heard{where: where}})
		}
	}
	return f.load(ctx, p, watches,
		func(i int) time.Duration { return time.Duration(i) * time.Second / time.Duration(rate) })
}

// WatchMetadata opens many watches of the metadata of all pods of the fleet, sends n changes as fast as the watches
// receive them, and returns that rate.
func (f *Fleet) WatchMetadata(ctx context.Context, many, n int) (Watches, error) {
	p, err := f.prepare(n, 10)
	if err != nil {
		return Watches{}, err
	}
	var watches []*watch
	for range many {
		watches = append(watches, &watch{path: "/fleet/api/v1/pods", accept: metadataOnly, want: n})
	}
	return f.load(ctx, p, watches, nil)
}

// watch is one open watch.
type watch struct {
	path, accept string
	want         int
	heard        heard
	body         io.ReadCloser
}

// ahead is how many changes may be in flight if there is no rate: fewer than the daemon buffers for a watch.
const ahead = 200

// load opens the watches, sends each change when it is due, and waits until all were received.
func (f *Fleet) load(ctx context.Context, p *plan, watches []*watch, due func(i int) time.Duration) (Watches, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer func() {
		for _, w := range watches {
			if w.body != nil {
				w.body.Close()
			}
		}
	}()
	began := time.Now()
	received := make(chan struct{}, 4096) // one for each line of the first watch, which limits the rate
	var ended sync.WaitGroup
	for i, w := range watches {
		if err := f.follow(ctx, w); err != nil {
			return Watches{}, err
		}
		ended.Add(1)
		reading.Go(func() {
			defer ended.Done()
			w.read(began, func() {
				if i == 0 && due == nil {
					received <- struct{}{}
				}
			})
		})
	}
	sent := map[sentKey]time.Duration{}
	first := time.Since(began) + 100*time.Millisecond
	for i, s := range p.sends {
		switch {
		case due != nil:
			time.Sleep(first + due(i) - time.Since(began))
		case i == 0:
			first = time.Since(began)
		case i >= ahead:
			select {
			case <-received:
			case <-ctx.Done():
				return Watches{}, fmt.Errorf("wait for change %d of %d to arrive: %w", i-ahead, len(p.sends), ctx.Err())
			}
		}
		sent[sentKey{s.place.cluster, s.change.Version}] = time.Since(began)
		f.sims[s.place.cluster].Send(s.change)
	}
	ended.Wait()
	return judge(p, watches, sent, first)
}

// follow opens a watch from the current version on.
func (f *Fleet) follow(ctx context.Context, w *watch) error {
	version, err := f.version(ctx, w.path)
	if err != nil {
		return err
	}
	w.body, err = f.open(ctx, w.path+"?watch=true&resourceVersion="+version, w.accept, false)
	return err
}

// version returns the version of a list.
func (f *Fleet) version(ctx context.Context, path string) (string, error) {
	body, err := f.open(ctx, path+"?limit=1", metadataListOnly, false)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return "", fmt.Errorf("read a list: %w", err)
	}
	return string(after(text, `"resourceVersion":"`)), nil
}

const metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// after returns the quoted text that follows a text.
func after(b []byte, text string) []byte {
	_, rest, _ := bytes.Cut(b, []byte(text))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return value
}

// read records lines until all expected ones have arrived.
func (w *watch) read(began time.Time, received func()) {
	defer func() {
		for range w.want - len(w.heard.lines) {
			received() // so that the sender does not wait for lines that will not come
		}
	}()
	lines := bufio.NewReaderSize(w.body, 64<<10)
	for len(w.heard.lines) < w.want {
		line, err := readLine(lines)
		if err != nil {
			w.heard.err = fmt.Errorf("after %d of %d changes: %w", len(w.heard.lines), w.want, err)
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) {
			w.heard.err = fmt.Errorf("after %d of %d changes the watch ended: %s", len(w.heard.lines), w.want, line)
			return
		}
		w.heard.lines = append(w.heard.lines, arrival{string(after(line, `"resourceVersion":"`)), time.Since(began)})
		received()
	}
}

// readLine returns a line, or enough of its beginning to contain the metadata.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	line = bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}

type sentKey struct {
	cluster int
	version string
}

// judge compares what was sent with what each watch received.
func judge(p *plan, watches []*watch, sent map[sentKey]time.Duration, first time.Duration) (Watches, error) {
	var took []time.Duration
	var last time.Duration
	lines := 0
	for _, w := range watches {
		if w.heard.err != nil {
			return Watches{}, fmt.Errorf("watch %s: %w", w.path, w.heard.err)
		}
		lines += len(w.heard.lines)
		if n := len(w.heard.lines); n > 0 {
			last = max(last, w.heard.lines[n-1].at)
		}
		if w.heard.where.namespace == "" {
			continue // the fleet has its own versions
		}
		i := 0
		for _, s := range p.sends {
			if s.place != w.heard.where {
				continue
			}
			got := w.heard.lines[i]
			if got.version != s.change.Version {
				return Watches{}, fmt.Errorf("watch %s: change %d has version %s, want %s", w.path, i,
					got.version, s.change.Version)
			}
			took = append(took, got.at-sent[sentKey{s.place.cluster, s.change.Version}])
			i++
		}
	}
	seconds := (last - first).Seconds()
	out := Watches{Rate: float64(len(p.sends)) / seconds, Lines: float64(lines) / seconds}
	if len(took) > 0 {
		out.P50, out.P99 = measure.Percentile(took, 0.5), measure.Percentile(took, 0.99)
	}
	return out, nil
}
