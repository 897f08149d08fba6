package load

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// workers bounds the requests in flight. More would only wait in the server.
const workers = 24

// The field managers under which a real cluster's pods are written.
const (
	controllerManager = "kube-controller-manager"
	kubelet           = "kubelet"
)

// loader loads one cluster.
type loader struct {
	Options
	client    kubernetes.Interface
	metadata  metadata.Interface
	templates []*template
	machines  []machine
	turn      atomic.Uint64 // round robin over machines

	existing []podRef
	pending  []podRef        // created by an earlier run that did not write their status
	leaving  []podRef        // being deleted
	names    map[string]bool // namespace/name of every pod seen or made
}

// podRef is a pod of one of our templates.
type podRef struct {
	template *template
	name     string
}

// Run creates the missing pods, then changes them as long as o says.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	l, err := newLoader(config, o)
	if err != nil {
		return err
	}
	if err := l.findMachines(ctx); err != nil {
		return err
	}
	if err := l.ensureOwners(ctx); err != nil {
		return err
	}
	if err := l.findExisting(ctx); err != nil {
		return err
	}
	if err := l.endDeletions(ctx); err != nil {
		return err
	}
	if err := l.fill(ctx); err != nil {
		return err
	}
	if o.Churn > 0 {
		return l.churn(ctx)
	}
	return nil
}

func newLoader(config *rest.Config, o Options) (*loader, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no rate limit: load the server as fast as it can go
	config.UserAgent = "devcluster-load"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	return &loader{Options: o, client: client, metadata: meta, templates: newTemplates(o), names: map[string]bool{}}, nil
}

// fill creates the missing pods, alternating between templates, so that an interrupted run has pods of all of them.
func (l *loader) fill(ctx context.Context) error {
	have := map[*template]int{}
	for _, p := range l.existing {
		have[p.template]++
	}
	var missing []podRef
	present := 0
	for _, t := range l.templates {
		present += min(have[t], t.pods)
		for i := 0; have[t] < t.pods; i++ {
			if ref := l.fresh(t, i); ref.name != "" {
				missing = append(missing, ref)
				have[t]++
			}
		}
	}
	interleave(missing)
	p := newProgress(l.Out, l.Terminal, "pods", present, l.Pods)
	defer p.stop()
	work := append(append([]podRef(nil), l.pending...), missing...)
	err := parallel(ctx, len(work), func(ctx context.Context, i int) error {
		if i < len(l.pending) {
			return l.writeStatus(ctx, work[i], nil)
		}
		if err := l.create(ctx, work[i]); err != nil {
			return err
		}
		p.add(1)
		return nil
	})
	p.stop()
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted at %d of %d pods: run the same command again to top up", p.done(), l.Pods)
		}
		return fmt.Errorf("after %d of %d pods: %w", p.done(), l.Pods, err)
	}
	l.existing = append(l.existing, missing...)
	if len(missing) == 0 {
		fmt.Fprintf(l.Out, "%d pods in %d namespaces exist already\n", l.Pods, l.Namespaces)
		return nil
	}
	fmt.Fprintf(l.Out, "%d pods of %d templates in %d namespaces: made %d in %.1f s, %.0f pods/s\n",
		l.Pods, l.Templates, l.Namespaces, len(missing), p.elapsed().Seconds(), p.rate())
	return nil
}

// fresh reserves the i-th name of the template unless it has been used.
func (l *loader) fresh(t *template, i int) podRef {
	name := t.podName(l.Seed, i)
	key := t.namespace + "/" + name
	if l.names[key] {
		return podRef{}
	}
	l.names[key] = true
	return podRef{t, name}
}

// interleave reorders pods that are grouped by template so that neighbours
// belong to different ones.
func interleave(pods []podRef) {
	groups := map[*template][]podRef{}
	var order []*template
	for _, p := range pods {
		if groups[p.template] == nil {
			order = append(order, p.template)
		}
		groups[p.template] = append(groups[p.template], p)
	}
	for i := 0; i < len(pods); {
		for _, t := range order {
			if g := groups[t]; len(g) > 0 {
				pods[i], groups[t] = g[0], g[1:]
				i++
			}
		}
	}
}

// create creates one pod and writes its running status.
func (l *loader) create(ctx context.Context, ref podRef) error {
	on := l.machines[l.turn.Add(1)%uint64(len(l.machines))]
	want := ref.template.newPod(ref.name, on, l.Controllers)
	pods := l.client.CoreV1().Pods(want.Namespace)
	var pod *corev1.Pod
	err := retry(ctx, func(ctx context.Context) (err error) {
		pod, err = pods.Create(ctx, want, metav1.CreateOptions{FieldManager: controllerManager})
		if apierrors.IsAlreadyExists(err) {
			// An earlier attempt succeeded and only its response was lost.
			pod, err = pods.Get(ctx, ref.name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create pod %s/%s: %w", want.Namespace, want.Name, err)
	}
	return l.writeStatus(ctx, ref, pod)
}

// writeStatus writes the running status of a pod, which is read first unless
// it is given.
func (l *loader) writeStatus(ctx context.Context, ref podRef, pod *corev1.Pod) error {
	pods := l.client.CoreV1().Pods(ref.template.namespace)
	for {
		err := retry(ctx, func(ctx context.Context) (err error) {
			if pod == nil {
				if pod, err = pods.Get(ctx, ref.name, metav1.GetOptions{}); err != nil {
					return err
				}
			}
			runningStatus(pod, l.machineNamed(pod.Spec.NodeName))
			_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: kubelet})
			return err
		})
		switch {
		case err == nil:
			return nil
		case apierrors.IsConflict(err):
			pod = nil // another client has written: read it again
		default:
			return fmt.Errorf("write the status of pod %s/%s: %w", ref.template.namespace, ref.name, err)
		}
	}
}

func (l *loader) machineNamed(name string) machine {
	for _, m := range l.machines {
		if m.name == name {
			return m
		}
	}
	return machine{name: name}
}
