package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/source/kube"
)

// Options say where members are found.
type Options struct {
	// Config is how the home cluster is reached.
	Config *rest.Config
	// Namespace has the objects. Secrets of other namespaces are never read.
	Namespace string
	// Secrets is the label selector of Secrets with kubeconfigs; "" follows none.
	Secrets string
	// Profiles follows ClusterProfile objects, and reads all Secrets of the namespace for their credentials.
	Profiles bool
	// Providers are the credential plugins for ClusterProfile objects. They are preferred in this order, and to those
	// that are built in.
	Providers []Provider
	// Logger is slog.Default() if nil.
	Logger *slog.Logger
}

// Members follows objects of the home cluster, and keeps the members of a fleet equal to them.
type Members struct {
	fleet    *fleet.Fleet
	log      *slog.Logger
	secrets  *informer.Informer[*corev1.Secret]
	profiles *informer.Informer[*unstructured.Unstructured] // nil if they are not followed
	lists    []list
	unknown  atomic.Int32 // lists whose clusters have not joined for the first time
	known    chan struct{}
}

// list is a kind of objects whose clusters are members.
type list struct {
	kind string
	from fleet.MemberList
	// of are the informers that the list reads.
	of []watched
}

// watched is an informer of objects of any type.
type watched struct {
	waitSynced func(context.Context) error
	// subscribe calls a function at every change.
	subscribe func(changed func()) error
}

// New returns the members of a fleet; Run follows them. It sends no request.
func New(f *fleet.Fleet, o Options) (*Members, error) {
	m := &Members{fleet: f, log: o.Logger, known: make(chan struct{})}
	if m.log == nil {
		m.log = slog.Default()
	}
	selector, err := labels.Parse(o.Secrets)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the label selector of Secrets is malformed; write it as in mirador.dev/member=true: %w", err)
	case o.Namespace == "":
		return nil, errors.New("the namespace of the members is not known; name it")
	case o.Secrets == "" && !o.Profiles:
		return nil, errors.New("neither Secrets nor ClusterProfile objects are to be followed; choose one")
	}
	of := kube.Options{Namespace: o.Namespace, Cluster: "the home cluster"}
	if !o.Profiles { // their Secrets need not have the label
		of.LabelSelector = o.Secrets
	}
	if m.secrets, err = newInformer(kube.Typed[*corev1.Secret])(o.Config, &of, m.log); err != nil {
		return nil, err
	}
	if o.Secrets != "" {
		m.lists = append(m.lists, list{fleet.FromSecret, &secretList{m.secrets, selector}, []watched{watch(m.secrets)}})
	}
	if o.Profiles {
		of.LabelSelector = ""
		m.profiles, err = newInformer(openProfiles)(o.Config, &of, m.log)
		if err != nil {
			return nil, err
		}
		from := &profileList{profiles: m.profiles, secrets: m.secrets, namespace: o.Namespace, providers: o.Providers,
			parsed: map[string]parsedProfile{}}
		m.lists = append(m.lists, list{fleet.FromProfile, from, []watched{watch(m.secrets), watch(m.profiles)}})
	}
	m.unknown.Store(int32(len(m.lists)))
	return m, nil
}

// newInformer returns a function that makes an informer of what a function makes a source of.
func newInformer[T runtime.Object](open func(*rest.Config, *kube.Options) (*kube.Source[T], error)) func(*rest.Config,
	*kube.Options, *slog.Logger) (*informer.Informer[T], error) {
	return func(cfg *rest.Config, o *kube.Options, log *slog.Logger) (*informer.Informer[T], error) {
		src, err := open(cfg, o)
		if err != nil {
			return nil, err
		}
		return informer.New(src, &informer.Options[T]{Logger: log})
	}
}

// Known returns a channel that is closed when all clusters that exist have joined for the first time.
func (m *Members) Known() <-chan struct{} { return m.known }

// Run follows the objects until ctx ends.
func (m *Members) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	part := func(run func(context.Context) error) {
		all.Go(func() {
			defer cancel()
			err := run(ctx)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	part(m.secrets.Run)
	if m.profiles != nil {
		part(m.profiles.Run)
	}
	for i := range m.lists {
		part(func(ctx context.Context) error { return m.follow(ctx, &m.lists[i]) })
	}
	all.Wait()
	return failed
}

// follow joins the clusters of a list when its informers have synced, and then follows them. Lists do not wait for each
// other: the kind ClusterProfile may not be installed.
func (m *Members) follow(ctx context.Context, l *list) error {
	for _, w := range l.of {
		if w.waitSynced(ctx) != nil {
			return nil // ctx has ended
		}
	}
	f, err := m.fleet.FollowMembers(l.kind, l.from)
	if err != nil {
		return err
	}
	if m.unknown.Add(-1) == 0 {
		close(m.known)
	}
	for _, w := range l.of {
		if err := w.subscribe(f.Check); err != nil {
			return err
		}
	}
	return f.Run(ctx, 0)
}

func watch[T any](i *informer.Informer[T]) watched {
	return watched{waitSynced: i.WaitSynced, subscribe: func(changed func()) error {
		_, err := i.Subscribe(informer.Funcs[T]{
			OnAdd:    func(T, bool) { changed() },
			OnUpdate: func(T, T) { changed() },
			OnDelete: func(T, bool) { changed() },
		}, nil)
		if errors.Is(err, informer.ErrStopped) {
			return nil
		}
		return err
	}}
}
