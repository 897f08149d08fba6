package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// A failed discovery is retried after firstRetry, then after twice as long each time,
	// up to lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// After a change in the cluster, discovery starts when there was no other change for
	// settle, and at most settleMost after the first one.
	settle     = time.Second
	settleMost = 5 * time.Second
	// stateInterval is how often the state is updated without a call of Health.
	stateInterval = 5 * time.Second
)

// recheckAfter are the times between the discoveries after a change: the cluster's own
// discovery is updated a moment after the change, and its OpenAPI documents later.
var recheckAfter = [...]time.Duration{4 * time.Second, 20 * time.Second}

// refreshLoop repeats the discovery until ctx ends.
func (c *Cluster) refreshLoop(ctx context.Context) {
	failures, recheck := 0, len(recheckAfter)
	logged := "" // the text of the failure that was logged last, until a success
	for {
		err := c.refresh(ctx)
		if ctx.Err() != nil {
			return
		}
		c.updateState()
		wait := jittered(c.fleet.opts.Refresh)
		switch {
		case err != nil:
			wait = retryAfter(failures)
			failures++
			if text := err.Error(); text != logged {
				logged = text
				c.log("ask what is served", err, "next", wait.Round(time.Millisecond).String())
			}
		case recheck < len(recheckAfter):
			wait = min(recheckAfter[recheck], wait)
			recheck++
		}
		if err == nil {
			failures, logged = 0, ""
		}
		if c.await(ctx, wait, err == nil) {
			recheck = 0
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// jittered returns a time up to a tenth shorter, so that clusters are not refreshed all at
// once.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

func retryAfter(failures int) time.Duration {
	d := lastRetry
	if failures < 6 {
		d = min(firstRetry<<failures, lastRetry)
	}
	return d/2 + rand.N(d/2+1)
}

// await waits for the time of the next discovery, and reports whether a change in the cluster
// is the reason for it. If watchChanges is false, because the cluster does not answer, changes
// do not shorten the wait; new credentials always do.
func (c *Cluster) await(ctx context.Context, d time.Duration, watchChanges bool) (changed bool) {
	judge := time.NewTicker(stateInterval)
	defer judge.Stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	poke := c.discoveryChanged
	if !watchChanges {
		poke = nil
	}
	latest := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return changed
		case <-timer.C:
			return changed
		case <-judge.C:
			if c.mayHaveChanged() {
				c.updateState()
			}
		case <-c.reconfigured:
			return changed // a request that failed may succeed now
		case <-c.client.usage.full:
			c.reopen()
			c.updateState()
		case <-poke:
			if !changed {
				changed, latest = true, time.Now().Add(settleMost)
			}
			timer.Reset(min(settle, time.Until(latest)))
		}
	}
}

// refresh runs the discovery once and mirrors what the cluster serves.
func (c *Cluster) refresh(ctx context.Context) (err error) {
	end, err := c.fleet.opts.asks.admit(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	err = c.identify(ctx)
	var answered *answeredGroups
	if err == nil {
		answered, err = recovered(func() (*answeredGroups, error) { return c.asks.groups(ctx) })
	}
	if err != nil {
		err = c.client.redact.requestError("", err)
		c.client.gate.fail(err)
		c.mu.Lock()
		c.discovered.err = err
		c.mu.Unlock()
		return err
	}
	selected := c.selectFrom(answered)
	c.selected, c.served = selected, selected.all
	c.client.forget(selected.all)
	faults := slices.Concat(selected.faults, c.adopt(selected)) // other clusters may have the selection, too
	faults = append(faults, c.watchTriggers()...)
	for _, fault := range faults[:min(len(faults), 10)] {
		c.log("discover", fault)
	}
	c.mu.Lock()
	if !c.discovered.done {
		c.discovered.first = time.Now()
	}
	c.discovered.done, c.discovered.err, c.discovered.partial = true, nil, nil
	c.groups = answered.groups
	if len(faults) > 0 {
		c.discovered.partial = fmt.Errorf("%d faults in what the cluster says it serves; the first: %w", len(faults),
			faults[0])
	}
	c.mu.Unlock()
	if err := c.askVersion(ctx); err != nil && ctx.Err() == nil {
		c.log("ask for the version", err)
	}
	if !c.fleet.opts.WithoutOpenAPI {
		c.docs.refreshSoon()
	}
	return nil
}

// recovered calls f and returns a panic as an error. An answer of one server must not end the
// program and with it all other mirrors.
func recovered[T any](f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w (reading the answer panicked: %v)", errNotKubernetes, p)
		}
	}()
	return f()
}

// adopt opens mirrors of new resources and closes those of resources that are no longer
// selected.
func (c *Cluster) adopt(o *selection) (faults []error) {
	old := c.resources.Load()
	next := make(map[schema.GroupVersionResource]*Resource, len(o.infos))
	infoChanged := false
	for i := range o.infos {
		info := &o.infos[i]
		gvr := gvrOf(info)
		r := old.byName[gvr]
		if r != nil && sameObjects(r.info.Load(), info) && !r.inf.ended() {
			infoChanged = infoChanged || !reflect.DeepEqual(r.info.Load(), info)
			r.info.Store(info)
			next[gvr] = r
			continue
		}
		r, err := openResource(c.client, info)
		if err != nil {
			faults = append(faults, fmt.Errorf("mirror %s: %w", gvr.GroupResource(), err))
			continue
		}
		next[gvr] = r
	}
	if infoChanged || !maps.Equal(next, old.byName) || !reflect.DeepEqual(o.groups, old.groups) {
		c.show(next, o.groups)
		c.fleet.notify()
	}
	for gvr, r := range old.byName {
		if next[gvr] != r {
			r.close()
		}
	}
	return faults
}

// reopen replaces the mirrors that were dropped because they exceeded a limit. The new mirrors
// are empty, and start to read after the pause.
func (c *Cluster) reopen() {
	old := c.resources.Load()
	next := maps.Clone(old.byName)
	for gvr, r := range old.byName {
		if !r.inf.ended() {
			continue
		}
		fresh, err := openResource(c.client, r.info.Load())
		if err != nil {
			c.log("mirror "+gvr.GroupResource().String(), err)
			continue // the next refresh retries it
		}
		next[gvr] = fresh
	}
	c.show(next, old.groups)
	for _, fault := range c.watchTriggers() {
		c.log("discover", fault)
	}
	c.fleet.notify()
}

// sameObjects reports whether two descriptions are of the same objects.
func sameObjects(a, b *metav1.APIResource) bool {
	return a.Kind == b.Kind && a.Namespaced == b.Namespaced
}

// serverVersion is a cluster's answer to /version.
type serverVersion struct {
	body []byte
	name string
}

const maxVersion = 64 << 10

// versionName matches a Kubernetes version. Clients can read the whole answer, so it must be a version.
var versionName = regexp.MustCompile(`^v[0-9]+\.[0-9]+[0-9A-Za-z.+_-]{0,100}$`)

// askVersion fetches the version.
func (c *Cluster) askVersion(ctx context.Context) error {
	a, err := c.client.get(ctx, "/version", acceptJSON, "", maxVersion)
	if err != nil {
		return err
	}
	v, err := parseVersion(a.body)
	if err != nil {
		return err
	}
	c.version.Store(v)
	return nil
}

func parseVersion(body []byte) (*serverVersion, error) {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return nil, errors.New("the answer to /version is malformed")
	}
	if !versionName.MatchString(info.GitVersion) {
		return nil, errors.New("the answer to /version has no version")
	}
	return &serverVersion{body: body, name: info.GitVersion}, nil
}

// log logs a failure of the cluster.
func (c *Cluster) log(what string, err error, more ...any) {
	c.client.log.Warn("fleet: "+what+" failed",
		append([]any{"cluster", c.name, "error", err, "cause", detail(err)}, more...)...)
}
