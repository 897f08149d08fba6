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

// Factory shares informers of one cluster between their users. All methods may be called from any goroutine.
type Factory struct {
	cfg    *rest.Config
	client *http.Client
	set    *settings

	// mu guards the fields below. It is locked before a share's own lock, and is never held while user code is called.
	mu     sync.Mutex
	shares map[key]share
	// sorted is shares in the order of their names. Health reads it without a lock, so that OnProblem may call Health
	// whatever locks are held while a problem is reported.
	sorted  atomic.Pointer[[]share]
	openers map[schema.GroupVersionResource]opener
	// served is the result of the last discovery; nil before the first.
	served map[schema.GroupVersionResource]Resource
	sets   map[refresher]struct{}
	// ctx is derived from that of Start while the factory is started, and cancel ends it.
	ctx    context.Context
	cancel context.CancelFunc
	// active are the informers that run or are about to end, including released ones; stuck has the errors of those that
	// ended while callbacks were still running.
	active map[*running]struct{}
	stuck  []error
	// closeLater closes connections that were still in use during Stop; nil if there was no Stop.
	closeLater *time.Timer
}

// form is how objects are represented.
type form string

const (
	asTyped    form = "typed"
	asNamed    form = "by name" // a Go type that is known only at run time
	asDynamic  form = "dynamic"
	asMetadata form = "metadata"
	asRaw      form = "raw"
)

// key identifies an informer: users with the same key share it.
type key struct {
	gvr       schema.GroupVersionResource
	form      form
	goType    reflect.Type
	namespace string
	labels    string
	fields    string
}

// title returns the informer's name for logs, metrics and errors. Resources are written as in kubectl, with their
// version: "deployments.v1.apps".
func (k key) title(cluster string) string {
	var b strings.Builder
	if cluster != "" {
		b.WriteString(cluster + "/")
	}
	b.WriteString(fullName(k.gvr))
	var parts []string
	for _, p := range []struct{ what, value string }{
		{"namespace=", k.namespace}, {"labels=", k.labels}, {"fields=", k.fields}} {
		if p.value != "" {
			parts = append(parts, p.what+p.value)
		}
	}
	if len(parts) > 0 {
		b.WriteString("[" + strings.Join(parts, " ") + "]")
	}
	if k.form != asTyped {
		b.WriteString("(" + string(k.form) + ")")
	}
	return b.String()
}

// fullName returns a resource with its version and group: "pods.v1", "deployments.v1.apps".
func fullName(gvr schema.GroupVersionResource) string {
	return strings.TrimSuffix(gvr.Resource+"."+gvr.Version+"."+gvr.Group, ".")
}

// New returns a factory for one API server. It sends no request: Start, All and Refresh do. Nil options mean the
// defaults.
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
	cfg.QPS = -1    // informers have their own backoff
	cfg.Timeout = 0 // a timeout would end watches
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

// problem logs and reports a failure that no informer reports itself.
func (f *Factory) problem(p informer.Problem) {
	f.set.Logger.Log(context.Background(), slog.LevelWarn, "factory: "+p.Doing+" failed",
		"informer", p.Informer, "key", string(p.Key), "error", p.Err)
	if f.set.OnProblem != nil {
		f.callOnProblem(p)
	}
}

// callOnProblem calls OnProblem. A panic in it is logged.
func (f *Factory) callOnProblem(p informer.Problem) {
	defer func() {
		if recovered := recover(); recovered != nil {
			f.set.Logger.Error("factory: OnProblem panicked", "informer", p.Informer, "doing", p.Doing, "panic",
				fmt.Sprint(recovered))
		}
	}()
	f.set.OnProblem(p)
}

// Health returns the health of every informer that is in use, sorted by name.
func (f *Factory) Health() []informer.Health {
	shares := f.registered()
	out := make([]informer.Health, len(shares))
	for i, s := range shares {
		out[i] = s.health()
	}
	return out
}

// registered returns the informers in use, sorted by name.
func (f *Factory) registered() []share {
	if all := f.sorted.Load(); all != nil {
		return *all
	}
	return nil
}

// sortShares must be called after every change of shares. The lock is held.
func (f *Factory) sortShares() {
	all := slices.SortedFunc(maps.Values(f.shares), func(a, b share) int { return strings.Compare(a.title(), b.title()) })
	f.sorted.Store(&all)
}
