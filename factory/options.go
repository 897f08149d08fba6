package factory

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mirador-k8s/mirador/informer"
)

// Option configures a factory. A Scope is one too: given to New, it is the scope
// of every handle that asks for no other.
type Option interface {
	apply(*settings) error
}

type optionFunc func(*settings) error

func (f optionFunc) apply(s *settings) error { return f(s) }

// settings are what options add up to.
type settings struct {
	scope      scope
	cluster    string
	scheme     *runtime.Scheme
	resync     time.Duration
	resyncFor  map[reflect.Type]time.Duration
	transforms []transform
	tweak      func(*metav1.ListOptions)
	logger     *slog.Logger
	onProblem  func(informer.Problem)
	resources  map[reflect.Type]schema.GroupVersionResource
	openers    map[schema.GroupVersionResource]opener
	informer   []informer.Option
}

// transform is a function for all objects of a type, or that implement it.
type transform struct {
	fits func(reflect.Type) bool
	call func(obj any) (any, error)
}

// DefaultResync gives every object again to each handler at this interval, unless
// its type or the handler has another. Without it that never happens.
func DefaultResync(every time.Duration) Option {
	return optionFunc(func(s *settings) error {
		s.resync = every
		return checkResync(every)
	})
}

// ResyncFor is DefaultResync for objects of type T alone; 0 turns it off for them.
func ResyncFor[T any](every time.Duration) Option {
	return optionFunc(func(s *settings) error {
		s.resyncFor[reflect.TypeFor[T]()] = every
		return checkResync(every)
	})
}

func checkResync(every time.Duration) error {
	if every < 0 {
		return fmt.Errorf("resync every %s: the interval cannot be negative; use 0 for never", every)
	}
	return nil
}

// Transform changes each object of type T before it is stored, once per version;
// typically it drops what nobody reads. An interface as T, such as metav1.Object,
// covers every object that implements it, whatever its form. Of several that fit,
// each is called, in the order they were given. A transform may read other objects with listers; see
// informer.Transform.
func Transform[T any](f func(obj T) (T, error)) Option {
	return optionFunc(func(s *settings) error {
		want := reflect.TypeFor[T]()
		if f == nil {
			return fmt.Errorf("the transform of %s is nil; leave it out", want)
		}
		s.transforms = append(s.transforms, transform{
			fits: func(t reflect.Type) bool {
				return t == want || want.Kind() == reflect.Interface && t.Implements(want)
			},
			call: func(obj any) (any, error) { return f(obj.(T)) },
		})
		return nil
	})
}

// transformFor combines the transforms that fit T; nil if none does.
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
				return out, fmt.Errorf("a transform made a %T of a %T; return the object that it was given", now, obj)
			}
		}
		return now.(T), nil
	}
}

// Tweak changes the options of every request just before it is sent.
func Tweak(f func(*metav1.ListOptions)) Option {
	return optionFunc(func(s *settings) error { s.tweak = f; return nil })
}

// Cluster names the cluster in names, logs and metrics. It is needed only where
// there are several.
func Cluster(name string) Option {
	return optionFunc(func(s *settings) error { s.cluster = name; return nil })
}

// Scheme is where Of finds Go types. It is client-go's otherwise, which knows what
// Kubernetes itself serves.
func Scheme(scheme *runtime.Scheme) Option {
	return optionFunc(func(s *settings) error {
		if scheme == nil {
			return errors.New("the scheme is nil; leave it out for client-go's")
		}
		s.scheme = scheme
		return nil
	})
}

// ResourceOf says which resource the objects of a Go type are, where its kind's name
// does not tell: the plural of the kind is taken otherwise. It also makes
// ForResource use the type.
func ResourceOf[T runtime.Object](gvr schema.GroupVersionResource) Option {
	return optionFunc(func(s *settings) error {
		s.resources[reflect.TypeFor[T]()] = gvr
		s.openers[gvr] = openerOf[T]()
		return nil
	})
}

// Logger logs problems. It is slog.Default() otherwise; a logr.Logger fits in as
// slog.New(logr.ToSlogHandler(l)).
func Logger(l *slog.Logger) Option {
	return optionFunc(func(s *settings) error { s.logger = l; return nil })
}

// OnProblem hears of everything that goes wrong in any informer and in discovery.
// It must not block; it may ask for Health. A panic in it is logged.
func OnProblem(f func(informer.Problem)) Option {
	return optionFunc(func(s *settings) error { s.onProblem = f; return nil })
}

// InformerOptions tune every informer, such as informer.History or
// informer.WatchTimeout.
func InformerOptions(opts ...informer.Option) Option {
	return optionFunc(func(s *settings) error { s.informer = append(s.informer, opts...); return nil })
}

func configure(opts []Option) (*settings, error) {
	s := &settings{
		scheme:    scheme.Scheme,
		resyncFor: map[reflect.Type]time.Duration{},
		resources: map[reflect.Type]schema.GroupVersionResource{},
		openers:   map[schema.GroupVersionResource]opener{},
	}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("an option is nil; leave it out")
		}
		if err := o.apply(s); err != nil {
			return nil, err
		}
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	return s, nil
}
