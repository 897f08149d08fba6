package load

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inventedMachines is how many node names are used if there are no nodes.
const inventedMachines = 100

// findMachines lists the nodes to put pods on. Without controllers there are none, and a name without a node is
// accepted; with controllers, pods on unknown nodes would be garbage-collected.
func (l *loader) findMachines(ctx context.Context) error {
	if !l.Controllers {
		for i := range inventedMachines {
			l.machines = append(l.machines, machine{fmt.Sprintf("node-%d", i), fmt.Sprintf("192.168.1.%d", i+1)})
		}
		return nil
	}
	return retry(ctx, func(ctx context.Context) error {
		nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		l.machines = nil
		for _, n := range nodes.Items {
			m := machine{name: n.Name}
			for _, a := range n.Status.Addresses {
				if a.Type == corev1.NodeInternalIP {
					m.ip = a.Address
				}
			}
			l.machines = append(l.machines, m)
		}
		if len(l.machines) == 0 {
			return apierrors.NewBadRequest("the cluster has no nodes to put pods on: start it with --nodes 1 or more")
		}
		return nil
	})
}

// ensureOwners creates the namespaces, and for each template the Job that owns its pods and the ConfigMap and Secret
// that they mount.
func (l *loader) ensureOwners(ctx context.Context) error {
	err := parallel(ctx, l.Namespaces, func(ctx context.Context, i int) error {
		return l.ensureNamespace(ctx, namespaceName(i))
	})
	if err != nil {
		return err
	}
	return parallel(ctx, len(l.templates), func(ctx context.Context, i int) error {
		return l.ensureTemplate(ctx, l.templates[i])
	})
}

func (l *loader) ensureNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}}
	err := retry(ctx, func(ctx context.Context) error {
		_, err := l.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	if !l.Controllers {
		return nil
	}
	// Pods are refused until the controller manager has created the service account.
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second,
		fmt.Errorf("the controller manager has not made it in 30 s"))
	defer cancel()
	for {
		_, err := l.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the service account %s/default: %w", name, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *loader) ensureTemplate(ctx context.Context, t *template) error {
	meta := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: t.name + suffix, Namespace: t.namespace,
			Labels: map[string]string{Label: t.name, "app": t.name}}
	}
	err := retry(ctx, func(ctx context.Context) error {
		_, err := l.client.CoreV1().ConfigMaps(t.namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: meta("-config"), Data: map[string]string{"config.yaml": "service: " + t.name +
				"\n"}}, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	if err != nil {
		return fmt.Errorf("create ConfigMap %s/%s-config: %w", t.namespace, t.name, err)
	}
	err = retry(ctx, func(ctx context.Context) error {
		_, err := l.client.CoreV1().Secrets(t.namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: meta("-tls"), StringData: map[string]string{"token": shortHash(l.Seed, t.name,
				"token")}}, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	if err != nil {
		return fmt.Errorf("create Secret %s/%s-tls: %w", t.namespace, t.name, err)
	}
	err = retry(ctx, func(ctx context.Context) error {
		var err error
		t.job, err = l.client.BatchV1().Jobs(t.namespace).Create(ctx, t.newJob(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			t.job, err = l.client.BatchV1().Jobs(t.namespace).Get(ctx, t.name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create Job %s/%s: %w", t.namespace, t.name, err)
	}
	if by := t.job.Spec.ManagedBy; by == nil || *by != managedBy {
		return fmt.Errorf("the Job %s/%s was created by another program: remove it or use another --seed", t.namespace,
			t.name)
	}
	return nil
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
