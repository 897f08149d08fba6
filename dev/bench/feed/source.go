package feed

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// Source is a ListWatch for the typed API: the same pods, the same events.
type Source struct {
	*ListWatch
	// Item returns an item of a pod.
	Item func(*corev1.Pod) object.Item[*corev1.Pod]
}

var _ source.Source[*corev1.Pod] = &Source{}

// Describe names the source. It does not support sendInitialEvents, like the ListWatch.
func (s *Source) Describe() source.Description { return source.Description{Resource: "pods"} }

// List returns all pods.
func (s *Source) List(context.Context, source.ListOptions) (source.Lister[*corev1.Pod], error) {
	return &lister{source: s}, nil
}

// Watch opens a watch.
func (s *Source) Watch(ctx context.Context, _ source.WatchOptions) (source.Watcher[*corev1.Pod], error) {
	return &watcher{source: s, ctx: ctx, events: s.ListWatch.watch().events}, nil
}

type lister struct {
	source *Source
	next   int
}

// readAtOnce is how many changes one Read returns at most.
const readAtOnce = 500

func (l *lister) Read(buf []object.Item[*corev1.Pod]) ([]object.Item[*corev1.Pod], error) {
	pods := l.source.list.Items
	if l.next == len(pods) {
		return buf, io.EOF
	}
	for end := min(l.next+readAtOnce, len(pods)); l.next < end; l.next++ {
		buf = append(buf, l.source.Item(&pods[l.next]))
	}
	return buf, nil
}

func (l *lister) Version() object.Version { return object.Version(l.source.list.ResourceVersion) }
func (l *lister) Close() error            { return nil }

type watcher struct {
	source *Source
	ctx    context.Context
	events <-chan watch.Event

	fetched byte // only written, so that the loads are not optimised away
}

// Read waits for an event, then returns all that are available.
func (w *watcher) Read(buf []source.Change[*corev1.Pod]) ([]source.Change[*corev1.Pod], error) {
	var e watch.Event
	select {
	case e = <-w.events:
	case <-w.ctx.Done():
		return buf, context.Cause(w.ctx)
	}
	start := len(buf)
	for n := 1; ; n++ {
		if e.Type == watch.Error {
			w.name(buf[start:])
			return buf, &source.Error{Reason: source.Expired, Err: apierrors.FromObject(e.Object)}
		}
		buf = append(buf, source.Change[*corev1.Pod]{Type: object.Updated,
			Item: object.Item[*corev1.Pod]{Value: e.Object.(*corev1.Pod)}})
		if n%together == 0 {
			w.name(buf[start:])
			start = len(buf)
		}
		if n == readAtOnce {
			break
		}
		select {
		case e = <-w.events:
			continue
		default:
		}
		break
	}
	w.name(buf[start:])
	return buf, nil
}

// together is how many pods are fetched from memory at the same time, as compat does it.
const together = 16

// name completes the items of changes that have only a pod.
func (w *watcher) name(changes []source.Change[*corev1.Pod]) {
	for i := range changes {
		p := changes[i].Item.Value
		w.fetched += p.Namespace[0] + p.Name[0] + byte(len(p.ResourceVersion))
	}
	for i := range changes {
		changes[i].Item = w.source.Item(changes[i].Item.Value)
	}
}

func (w *watcher) Close() error { return nil }
