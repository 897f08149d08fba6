package workload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Namespace is where the workload lives.
const Namespace = "shop"

// interval is the time between two steps: long enough to follow by eye.
const interval = 3 * time.Second

// step brings one Deployment to a state: a number of replicas of an image, or deleted.
type step struct {
	name     string
	image    string
	replicas int32 // 0: deleted
}

// cycle is repeated forever. It starts and ends without any Deployment.
var cycle = []step{
	{"web", "nginx:1.29", 2},
	{"worker", "busybox:1.37", 1},
	{"web", "nginx:1.29", 4},
	{"worker", "busybox:1.37", 3},
	{"web", "nginx:1.30", 4}, // a rolling update
	{"worker", "", 0},
	{"web", "nginx:1.30", 1},
	{"web", "", 0},
}

// Run changes the workload until ctx ends. Errors are reported and the change is tried again in the next cycle, so
// that a demonstration survives a restart of the server.
func Run(ctx context.Context, client kubernetes.Interface, say func(format string, args ...any)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := 0; ; i++ {
		s := cycle[i%len(cycle)]
		if err := s.apply(ctx, client); err != nil && ctx.Err() == nil {
			say("workload: %v", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s step) apply(ctx context.Context, client kubernetes.Interface) error {
	deployments := client.AppsV1().Deployments(Namespace)
	if s.replicas == 0 {
		err := deployments.Delete(ctx, s.name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete deployment %s: %w", s.name, err)
		}
		return nil
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", Namespace, err)
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := deployments.Get(ctx, s.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = deployments.Create(ctx, s.deployment(), metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		d.Spec.Replicas = &s.replicas
		d.Spec.Template.Spec.Containers[0].Image = s.image
		_, err = deployments.Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("bring deployment %s to %d replicas of %s: %w", s.name, s.replicas, s.image, err)
	}
	return nil
}

func (s step) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": s.name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &s.replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: s.name, Image: s.image}}},
			},
		},
	}
}
