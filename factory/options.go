package factory

import (
	"fmt"
	"log/slog"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/informer"
	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/store"
)

// Options configure a factory. The zero value of each field means its default.
type Options struct {
	// Scope is the scope of every handle that has none of its own. The default is everything.
	Scope Scope
	// Cluster is the cluster's name in logs and metrics. It is needed only where there are several.
	Cluster string
	// Scheme is where Of finds Go types. The default is client-go's, which has the types of Kubernetes itself.
	Scheme *runtime.Scheme
	// Types has options for single Go types, made by ForType and ResourceOf.
	Types []TypeOption
	// Tweak changes the options of every request just before it is sent.
	Tweak func(*metav1.ListOptions)

	// Resync is the interval at which every object is delivered again to each handler, unless its type or the handler
	// has its own interval. The default is never.
	Resync time.Duration
	// Layout, HistoryBytes, HistoryAge, WatchTimeout and Backoff are those of informer.Options, for every informer of
	// the factory.
	Layout       store.Layout
	HistoryBytes int
	HistoryAge   time.Duration
	WatchTimeout time.Duration
	Backoff      reflector.Backoff

	// OnProblem is called for everything that goes wrong in an informer or in discovery. It must not block; it may call
	// Health. A panic in it is logged.
	OnProblem func(informer.Problem)
	// Logger logs problems. The default is slog.Default(); a logr.Logger can be used as
	// slog.New(logr.ToSlogHandler(l)).
	Logger *slog.Logger
}

// TypeOption is an option for one Go type.
type TypeOption func(*settings) error

// TypeOptions are the options of ForType.
type TypeOptions[T any] struct {
	// Resync is the interval at which objects of type T are delivered again. The default is the factory's; a negative
	// interval means never.
	Resync time.Duration
	// Transform changes each object of type T before it is stored, once per version; typically it drops fields that are
	// never read. An interface as T, such as metav1.Object, covers every object that implements it. If several transforms
	// fit an object, all are called, in the order of Options.Types. A transform may read other objects with listers; see
	// informer.Options.
	Transform func(obj T) (T, error)
}

// ForType sets options for the objects of type T.
func ForType[T any](o TypeOptions[T]) TypeOption {
	return func(s *settings) error {
		want := reflect.TypeFor[T]()
		if o.Resync != 0 {
			s.resyncFor[want] = max(o.Resync, 0)
		}
		if o.Transform != nil {
			s.transforms = append(s.transforms, transform{
				fits: func(t reflect.Type) bool {
					return t == want || want.Kind() == reflect.Interface && t.Implements(want)
				},
				call: func(obj any) (any, error) { return o.Transform(obj.(T)) },
			})
		}
		return nil
	}
}

// ResourceOf says which resource the objects of type T are. The default is the plural of the kind. It also makes
// ForResource use the type.
func ResourceOf[T runtime.Object](gvr schema.GroupVersionResource) TypeOption {
	return func(s *settings) error {
		s.resources[reflect.TypeFor[T]()] = gvr
		s.openers[gvr] = openerOf[T]()
		return nil
	}
}

// settings are checked options.
type settings struct {
	Options
	scope      scope
	resyncFor  map[reflect.Type]time.Duration
	transforms []transform
	resources  map[reflect.Type]schema.GroupVersionResource
	openers    map[schema.GroupVersionResource]opener
}

// transform is a function for all objects of a type, or of types that implement an interface.
type transform struct {
	fits func(reflect.Type) bool
	call func(obj any) (any, error)
}

func configure(opts *Options) (*settings, error) {
	s := &settings{
		resyncFor: map[reflect.Type]time.Duration{},
		resources: map[reflect.Type]schema.GroupVersionResource{},
		openers:   map[schema.GroupVersionResource]opener{},
	}
	if opts != nil {
		s.Options = *opts
	}
	if s.Resync < 0 {
		return nil, fmt.Errorf("the resync interval is %s; it cannot be negative, and 0 means never", s.Resync)
	}
	if s.Scheme == nil {
		s.Scheme = scheme.Scheme
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	for i, set := range s.Types {
		if set == nil {
			return nil, fmt.Errorf("Options.Types[%d] is nil; leave it out", i)
		}
		if err := set(s); err != nil {
			return nil, err
		}
	}
	var err error
	s.scope, err = s.Scope.check()
	return s, err
}

// transformFor returns the combined transforms for T, or nil if there are none.
func transformFor[T any](s *settings) func(T) (T, error) {
	var all []transform
	for _, t := range s.transforms {
		if t.fits(reflect.TypeFor[T]()) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(obj T) (out T, err error) {
		var now any = obj
		for _, t := range all {
			if now, err = t.call(now); err != nil {
				return out, err
			}
			if _, ok := now.(T); !ok {
				return out, fmt.Errorf("a transform returned a %T for a %T; it must return the object that it was given", now, obj)
			}
		}
		return now.(T), nil
	}
}
