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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// A cluster that does not answer is asked again after firstRetry, then after twice
	// as long each time, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// After a change there, it is asked when nothing more has come for settle, and no
	// later than settleMost after the change.
	settle     = time.Second
	settleMost = 5 * time.Second
	// judgeEvery is how often the state is looked at if nobody asks for it.
	judgeEvery = 5 * time.Second
)

// lookAgain is when a cluster is asked again after a change: its own discovery follows
// a moment later than the change, and its OpenAPI later still.
var lookAgain = [...]time.Duration{4 * time.Second, 20 * time.Second}

// follow asks the cluster what it serves, again and again, and mirrors that.
func (c *Cluster) follow(ctx context.Context) {
	failures, again := 0, len(lookAgain)
	for {
		err := c.look(ctx)
		if ctx.Err() != nil {
			return
		}
		c.judge()
		wait := jittered(c.fleet.opts.Refresh)
		switch {
		case err != nil:
			wait = retryAfter(failures)
			failures++
			c.log("ask what is served", err, "next", wait.Round(time.Millisecond).String())
		case again < len(lookAgain):
			wait = min(lookAgain[again], wait)
			again++
		}
		if err == nil {
			failures = 0
		}
		if c.await(ctx, wait, err == nil) {
			again = 0
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// jittered is a time up to a tenth shorter, so that clusters are not asked in step.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/10+1) }

func retryAfter(failures int) time.Duration {
	d := lastRetry
	if failures < 6 {
		d = min(firstRetry<<failures, lastRetry)
	}
	return d/2 + rand.N(d/2+1)
}

// await waits for the time of the next look, and reports whether a change there was the
// reason for it. A cluster that does not answer is not asked earlier for a change, but it is for
// other credentials.
func (c *Cluster) await(ctx context.Context, d time.Duration, heed bool) (changed bool) {
	judge := time.NewTicker(judgeEvery)
	defer judge.Stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	poke := c.poke
	if !heed {
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
			c.judge()
		case <-c.renewed:
			return changed // what failed may succeed now
		case <-c.link.ledger.full:
			c.reopen()
			c.judge()
		case <-poke:
			if !changed {
				changed, latest = true, time.Now().Add(settleMost)
			}
			timer.Reset(min(settle, time.Until(latest)))
		}
	}
}

// look asks the cluster once what it serves, and mirrors that.
func (c *Cluster) look(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	groups, err := contained(func() ([]group, error) { return c.asks.groups(ctx) })
	if err != nil {
		err = c.link.hide.fault("", err)
		c.mu.Lock()
		c.book.lookErr = err
		c.mu.Unlock()
		return err
	}
	offer := selectFrom(groups, c.served, c.fleet.choice)
	c.served = offer.all
	c.link.forget(offer.all)
	faults := append(offer.faults, c.adopt(offer)...)
	faults = append(faults, c.watchTriggers()...)
	for _, fault := range faults[:min(len(faults), 10)] {
		c.log("discover", fault)
	}
	c.mu.Lock()
	if !c.book.looked {
		c.book.first = time.Now()
	}
	c.book.looked, c.book.lookErr, c.book.partial = true, nil, nil
	if len(faults) > 0 {
		c.book.partial = fmt.Errorf("%d faults in what the cluster says it serves; the first: %w", len(faults), faults[0])
	}
	c.mu.Unlock()
	if err := c.askVersion(ctx); err != nil && ctx.Err() == nil {
		c.log("ask for the version", err)
	}
	if !c.fleet.opts.WithoutOpenAPI {
		c.docs.again()
	}
	return nil
}

// contained runs what reads a server's answers. Whatever a server sends, it must not end
// the program and with it the mirrors of all others.
func contained[T any](f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w (reading the answer panicked: %v)", errNotKubernetes, p)
		}
	}()
	return f()
}

// adopt opens what is new and closes what is gone.
func (c *Cluster) adopt(o *offer) (faults []error) {
	old := c.shown.Load()
	next := make(map[schema.GroupVersionResource]*Resource, len(o.infos))
	described := false // in another way than before
	for i := range o.infos {
		info := &o.infos[i]
		gvr := gvrOf(info)
		r := old.byName[gvr]
		if r != nil && sameObjects(r.info.Load(), info) && !r.inf.ended() {
			described = described || !reflect.DeepEqual(r.info.Load(), info)
			r.info.Store(info)
			next[gvr] = r
			continue
		}
		r, err := openResource(c.link, info)
		if err != nil {
			faults = append(faults, fmt.Errorf("mirror %s: %w", gvr.GroupResource(), err))
			continue
		}
		next[gvr] = r
	}
	if described || !maps.Equal(next, old.byName) || !reflect.DeepEqual(o.groups, old.groups) {
		c.show(next, o.groups)
		c.fleet.tell()
	}
	for gvr, r := range old.byName {
		if next[gvr] != r {
			r.close()
		}
	}
	return faults
}

// reopen puts another mirror in the place of each that was ended because it was too large.
// It is empty, and reads again when the time has come.
func (c *Cluster) reopen() {
	old := c.shown.Load()
	next := maps.Clone(old.byName)
	for gvr, r := range old.byName {
		if !r.inf.ended() {
			continue
		}
		fresh, err := openResource(c.link, r.info.Load())
		if err != nil {
			c.log("mirror "+gvr.GroupResource().String(), err)
			continue // the next look tries again
		}
		next[gvr] = fresh
	}
	c.show(next, old.groups)
	for _, fault := range c.watchTriggers() {
		c.log("discover", fault)
	}
	c.fleet.tell()
}

// sameObjects reports whether two descriptions are of the same objects.
func sameObjects(a, b *metav1.APIResource) bool {
	return a.Kind == b.Kind && a.Namespaced == b.Namespaced
}

// serverVersion is what a cluster said of its version.
type serverVersion struct {
	body []byte
	name string
}

const maxVersion = 64 << 10

// versionName is what a Kubernetes version looks like. The whole answer is shown to clients, so it must be one.
var versionName = regexp.MustCompile(`^v[0-9]+\.[0-9]+[0-9A-Za-z.+_-]{0,100}$`)

// askVersion asks for the version.
func (c *Cluster) askVersion(ctx context.Context) error {
	a, err := c.link.get(ctx, "/version", acceptJSON, "", maxVersion)
	if err != nil {
		return err
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(a.body, &info); err != nil {
		return errors.New("the answer to /version is malformed")
	}
	if !versionName.MatchString(info.GitVersion) {
		return errors.New("the answer to /version names no version")
	}
	c.version.Store(&serverVersion{body: a.body, name: info.GitVersion})
	return nil
}

// log tells of something that went wrong with the cluster.
func (c *Cluster) log(what string, err error, more ...any) {
	c.link.log.Warn("fleet: "+what+" failed",
		append([]any{"cluster", c.name, "error", err, "cause", detail(err)}, more...)...)
}
