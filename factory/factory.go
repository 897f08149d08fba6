package factory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informer"
)

// Factory shares informers of one cluster between their users. All methods may be
// called from any goroutine.
type Factory struct {
	cfg    *rest.Config
	client *http.Client
	set    *settings

	// mu guards what follows. It is taken before a share's own lock, and never held
	// while something of the user's is called.
	mu     sync.Mutex
	shares map[key]share
	// inOrder is shares by name, as it was last changed: Health takes no lock, so that it may be asked by
	// whoever hears of a problem, whatever locks the report is made under.
	inOrder atomic.Pointer[[]share]
	openers map[schema.GroupVersionResource]opener
	// served is what discovery said last; nil before it was asked.
	served map[schema.GroupVersionResource]Resource
	sets   map[refresher]struct{}
	// ctx is that of Start while the factory is started, and cancel ends it.
	ctx    context.Context
	cancel context.CancelFunc
	// active are the informers that run or are about to end, released ones
	// included; stuck is what those said that ended with callbacks still running.
	active map[*running]struct{}
	stuck  []error
	// late closes what Stop could not, a moment after it; nil when there was no Stop.
	late *time.Timer
}

// form is how objects are represented.
type form string

const (
	asTyped    form = "typed"
	asNamed    form = "by name" // of a Go type that is known at run time only
	asDynamic  form = "dynamic"
	asMetadata form = "metadata"
	asRaw      form = "raw"
)

// key tells informers apart: what has the same key is shared.
type key struct {
	gvr       schema.GroupVersionResource
	form      form
	goType    reflect.Type
	namespace string
	labels    string
	fields    string
}

// title names an informer in logs, metrics and errors, as kubectl spells a
// resource with its version: "deployments.v1.apps".
func (k key) title(cluster string) string {
	var b strings.Builder
	if cluster != "" {
		b.WriteString(cluster + "/")
	}
	b.WriteString(fullName(k.gvr))
	var narrowed []string
	for _, n := range []struct{ what, to string }{
		{"namespace=", k.namespace}, {"labels=", k.labels}, {"fields=", k.fields}} {
		if n.to != "" {
			narrowed = append(narrowed, n.what+n.to)
		}
	}
	if len(narrowed) > 0 {
		b.WriteString("[" + strings.Join(narrowed, " ") + "]")
	}
	if k.form != asTyped {
		b.WriteString("(" + string(k.form) + ")")
	}
	return b.String()
}

// fullName is a resource with its version and group: "pods.v1",
// "deployments.v1.apps".
func fullName(gvr schema.GroupVersionResource) string {
	return strings.TrimSuffix(gvr.Resource+"."+gvr.Version+"."+gvr.Group, ".")
}

// New makes a factory for one API server. Nothing is asked of the server before
// Start, All or Refresh. Nil options mean the defaults.
func New(cfg *rest.Config, opts *Options) (*Factory, error) {
	fail := func(err error) (*Factory, error) { return nil, fmt.Errorf("make a factory: %w", err) }
	if cfg == nil {
		return fail(errors.New("the config is nil; load one with clientcmd or rest.InClusterConfig"))
	}
	if cfg.Host == "" {
		return fail(errors.New("the config has no Host; load a kubeconfig with clientcmd, or set Host to the API " +
			"server's URL"))
	}
	set, err := configure(opts)
	if err != nil {
		return fail(err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1    // informers back off by themselves
	cfg.Timeout = 0 // it would end watches
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fail(fmt.Errorf("the config's TLS or credentials are not usable; check the files it names: %w", err))
	}
	return &Factory{
		cfg: cfg, client: client, set: set,
		shares:  map[key]share{},
		openers: set.openers,
		sets:    map[refresher]struct{}{},
		active:  map[*running]struct{}{},
	}, nil
}

// problem tells of something that went wrong outside of any informer's own view.
func (f *Factory) problem(p informer.Problem) {
	f.set.Logger.Log(context.Background(), slog.LevelWarn, "factory: "+p.Doing+" failed",
		"informer", p.Informer, "key", string(p.Key), "error", p.Err)
	if f.set.OnProblem != nil {
		f.hear(p)
	}
}

// hear tells OnProblem. A panic in it is logged and ends nothing.
func (f *Factory) hear(p informer.Problem) {
	defer func() {
		if recovered := recover(); recovered != nil {
			f.set.Logger.Error("factory: OnProblem panicked", "informer", p.Informer, "doing", p.Doing, "panic",
				fmt.Sprint(recovered))
		}
	}()
	f.set.OnProblem(p)
}

// Health tells how every informer is doing, by name.
func (f *Factory) Health() []informer.Health {
	shares := f.registered()
	out := make([]informer.Health, len(shares))
	for i, s := range shares {
		out[i] = s.health()
	}
	return out
}

// registered are the informers in use, by name.
func (f *Factory) registered() []share {
	if all := f.inOrder.Load(); all != nil {
		return *all
	}
	return nil
}

// changed notes that there are other informers in use. The lock is held.
func (f *Factory) changed() {
	all := slices.SortedFunc(maps.Values(f.shares), func(a, b share) int { return strings.Compare(a.title(), b.title()) })
	f.inOrder.Store(&all)
}
