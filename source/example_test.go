package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

// settings is a source that has nothing to do with Kubernetes: a map whose
// history is kept.
type settings struct {
	mu      sync.Mutex
	version int
	values  map[object.Key]string
	history []source.Change[string]
	changed chan struct{}
}

func newSettings() *settings {
	return &settings{values: map[object.Key]string{}, changed: make(chan struct{})}
}

func (s *settings) set(key object.Key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.values[key] = value
	s.history = append(s.history, source.Change[string]{Type: object.Updated, Item: object.Item[string]{
		Key: key, Version: object.Version(strconv.Itoa(s.version)), Value: value}})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *settings) Describe() source.Description { return source.Description{Resource: "settings"} }

func (s *settings) List(context.Context, source.ListOptions) (source.Lister[string], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &settingsList{version: object.Version(strconv.Itoa(s.version))}
	for k, v := range s.values {
		l.items = append(l.items, object.Item[string]{Key: k, Version: l.version, Value: v})
	}
	sort.Slice(l.items, func(i, j int) bool { return l.items[i].Key < l.items[j].Key })
	return l, nil
}

type settingsList struct {
	version object.Version
	items   []object.Item[string]
}

func (l *settingsList) Read(buf []object.Item[string]) ([]object.Item[string], error) {
	if len(l.items) == 0 {
		return buf, io.EOF
	}
	buf, l.items = append(buf, l.items...), nil
	return buf, nil
}
func (l *settingsList) Version() object.Version { return l.version }
func (l *settingsList) Close() error            { return nil }

func (s *settings) Watch(ctx context.Context, o source.WatchOptions) (source.Watcher[string], error) {
	at, err := strconv.Atoi(string(o.Version))
	if err != nil {
		return nil, &source.Error{Reason: source.Expired, Err: fmt.Errorf("version %q: %w", o.Version, err)}
	}
	return &settingsWatch{s: s, ctx: ctx, at: at}, nil
}

type settingsWatch struct {
	s   *settings
	ctx context.Context
	at  int
}

// Read waits for a change, then gives all that there are.
func (w *settingsWatch) Read(buf []source.Change[string]) ([]source.Change[string], error) {
	for {
		w.s.mu.Lock()
		buf = append(buf, w.s.history[w.at:]...)
		w.at = len(w.s.history)
		changed := w.s.changed
		w.s.mu.Unlock()
		if len(buf) > 0 {
			return buf, nil
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return buf, w.ctx.Err()
		}
	}
}
func (w *settingsWatch) Close() error { return nil }

func ExampleSource() {
	s := newSettings()
	s.set("colour", "red")
	s.set("size", "XL")
	ctx := context.Background()

	list, _ := s.List(ctx, source.ListOptions{})
	items, _ := list.Read(nil)
	fmt.Println("state at", list.Version())
	for _, it := range items {
		fmt.Println(" ", it.Key, it.Value)
	}
	watch, _ := s.Watch(ctx, source.WatchOptions{Version: list.Version()})
	s.set("colour", "blue")
	changes, _ := watch.Read(nil)
	fmt.Println("then", changes[0].Item.Key, changes[0].Item.Value, "at", changes[0].Item.Version)
	// Output:
	// state at 2
	//   colour red
	//   size XL
	// then colour blue at 3
}

func ExampleReasonOf() {
	err := fmt.Errorf("listing pods: %w",
		&source.Error{Reason: source.Throttled, RetryAfter: 3 * time.Second, Err: errors.New("too many requests")})
	fmt.Println(err, "|", source.ReasonOf(err), "|", source.RetryAfter(err))
	fmt.Println(source.ReasonOf(io.ErrUnexpectedEOF))
	// Output:
	// listing pods: too many requests | throttled | 3s
	// unavailable
}

func TestDescriptionNamesClusterResourceAndScope(t *testing.T) {
	for want, d := range map[string]source.Description{
		"pods":                {Resource: "pods"},
		"pods[web]":           {Resource: "pods", Scope: "web"},
		"eu/deployments.apps": {Cluster: "eu", Resource: "deployments.apps"},
	} {
		if d.String() != want {
			t.Errorf("%+v prints %q, want %q", d, d, want)
		}
	}
	if (&source.Error{Reason: source.Denied}).Error() != "denied" {
		t.Error("an error without a cause says its reason")
	}
	if source.Reason(99).String() != "Reason(99)" {
		t.Error("an unknown reason says its number")
	}
}
