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
	// Item makes an item of a pod.
	Item func(*corev1.Pod) object.Item[*corev1.Pod]
}

var _ source.Source[*corev1.Pod] = &Source{}

// Describe names the source. It has no streaming form, as the ListWatch has none.
func (s *Source) Describe() source.Description { return source.Description{Resource: "pods"} }

// List gives all pods.
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

// readAtOnce is how much one Read gives.
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
}

// Read waits for an event, then takes all that are there.
func (w *watcher) Read(buf []source.Change[*corev1.Pod]) ([]source.Change[*corev1.Pod], error) {
	var e watch.Event
	select {
	case e = <-w.events:
	case <-w.ctx.Done():
		return buf, context.Cause(w.ctx)
	}
	for n := 1; ; n++ {
		if e.Type == watch.Error {
			return buf, &source.Error{Reason: source.Expired, Err: apierrors.FromObject(e.Object)}
		}
		buf = append(buf, source.Change[*corev1.Pod]{Type: source.Put, Item: w.source.Item(e.Object.(*corev1.Pod))})
		if n == readAtOnce {
			return buf, nil
		}
		select {
		case e = <-w.events:
		default:
			return buf, nil
		}
	}
}

func (w *watcher) Close() error { return nil }
