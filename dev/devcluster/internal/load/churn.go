package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Out of a hundred changes this many are status transitions and label updates; the rest are deletions and the
// creations that replace them.
const (
	statusShare = 80
	labelShare  = 10
)

var tracks = []string{"stable", "canary", "beta", "drain"}

// pool hands out pods so that no two workers change the same one at a time.
type pool struct {
	mu      sync.Mutex
	pods    []podRef
	deleted []*template // templates that lack a pod
	serial  map[*template]int
}

func (p *pool) take() (podRef, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pods) == 0 {
		return podRef{}, false
	}
	i, last := rand.IntN(len(p.pods)), len(p.pods)-1
	ref := p.pods[i]
	p.pods[i] = p.pods[last]
	p.pods = p.pods[:last]
	return ref, true
}

func (p *pool) put(ref podRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods = append(p.pods, ref)
}

// short records that a pod of the template was deleted.
func (p *pool) short(t *template) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted = append(p.deleted, t)
}

// replacement returns the name of a pod to create for a deleted one.
func (p *pool) replacement(l *loader) (podRef, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.deleted) == 0 {
		return podRef{}, false
	}
	t := p.deleted[0]
	p.deleted = p.deleted[1:]
	for i := max(p.serial[t], t.pods); ; i++ {
		if ref := l.fresh(t, i); ref.name != "" {
			p.serial[t] = i + 1
			return ref, true
		}
	}
}

// churn keeps changing pods at the requested rate until its duration is over or ctx ends, which is not an error.
func (l *loader) churn(ctx context.Context) error {
	run := ctx
	if l.Duration > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeout(ctx, l.Duration)
		defer cancel()
	}
	pool := &pool{pods: l.existing, serial: map[*template]int{}}
	limiter := rate.NewLimiter(rate.Limit(l.Churn), max(1, int(l.Churn/20)))
	p := newProgress(l.Out, l.Terminal, "changes", 0, 0)
	defer p.stop()
	failed := make(chan error, workers)
	run, cancel := context.WithCancel(run)
	defer cancel()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for limiter.Wait(run) == nil {
				if err := l.change(run, pool); err != nil && run.Err() == nil {
					failed <- err
					cancel()
					return
				}
				p.add(1)
			}
		})
	}
	wg.Wait()
	p.stop()
	fmt.Fprintf(l.Out, "%d changes in %.1f s, %.1f/s\n", p.done(), p.elapsed().Seconds(), p.rate())
	select {
	case err := <-failed:
		return fmt.Errorf("after %d changes: %w", p.done(), err)
	default:
		return nil
	}
}

// change makes one change of a random kind.
func (l *loader) change(ctx context.Context, pool *pool) error {
	kind := rand.IntN(100)
	if kind >= statusShare+labelShare {
		if ref, ok := pool.replacement(l); ok {
			if err := l.create(ctx, ref); err != nil {
				return err
			}
			pool.put(ref)
			return nil
		}
	}
	ref, ok := pool.take()
	if !ok {
		return nil // all pods are in use by other workers
	}
	var err error
	switch {
	case kind < statusShare:
		err = l.changeStatus(ctx, ref)
	case kind < statusShare+labelShare:
		err = l.changeLabel(ctx, ref)
	default:
		if err = l.delete(ctx, ref); err == nil {
			pool.short(ref.template)
			return nil
		}
	}
	if apierrors.IsNotFound(err) {
		pool.short(ref.template) // another client deleted it
		return nil
	}
	pool.put(ref)
	return err
}

// changeStatus reports a container as restarted, ready or not ready, in the form in which the kubelet does.
func (l *loader) changeStatus(ctx context.Context, ref podRef) error {
	now := metav1.NewTime(time.Now())
	ready, state := rand.IntN(4) != 0, corev1.ConditionTrue
	if !ready {
		state = corev1.ConditionFalse
	}
	started := map[string]any{"startedAt": now}
	container := map[string]any{"name": "app", "ready": ready}
	if ready && rand.IntN(3) == 0 {
		container["containerID"] = containerID()
		container["restartCount"] = 1 + rand.IntN(20)
		container["state"] = map[string]any{"running": started}
	}
	condition := func(kind corev1.PodConditionType) map[string]any {
		return map[string]any{"type": kind, "status": state, "lastTransitionTime": now}
	}
	return l.patch(ctx, ref, kubelet, types.StrategicMergePatchType, map[string]any{"status": map[string]any{
		"conditions":        []any{condition(corev1.PodReady), condition(corev1.ContainersReady)},
		"containerStatuses": []any{container},
	}}, "status")
}

// changeLabel moves the pod to another release track.
func (l *loader) changeLabel(ctx context.Context, ref podRef) error {
	track := tracks[rand.IntN(len(tracks))]
	return l.patch(ctx, ref, "kubectl-label", types.MergePatchType,
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"track": track}}})
}

func (l *loader) patch(ctx context.Context, ref podRef, manager string, kind types.PatchType, body any,
	subresources ...string) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	err = retry(ctx, func(ctx context.Context) error {
		_, err := l.client.CoreV1().Pods(ref.template.namespace).Patch(ctx, ref.name, kind, data,
			metav1.PatchOptions{FieldManager: manager}, subresources...)
		return err
	})
	if err != nil {
		return fmt.Errorf("change pod %s/%s: %w", ref.template.namespace, ref.name, err)
	}
	return nil
}

// delete removes a pod: gracefully if KWOK acts as the kubelet, at once otherwise.
func (l *loader) delete(ctx context.Context, ref podRef) error {
	options := metav1.DeleteOptions{}
	if !l.Controllers {
		options.GracePeriodSeconds = new(int64(0))
	}
	err := retry(ctx, func(ctx context.Context) error {
		return l.client.CoreV1().Pods(ref.template.namespace).Delete(ctx, ref.name, options)
	})
	if err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", ref.template.namespace, ref.name, err)
	}
	return nil
}
