package workload

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestEveryStepBringsItsDeploymentToTheStateItNames(t *testing.T) {
	client := fake.NewClientset()
	for i, s := range cycle {
		if err := s.apply(t.Context(), client); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		d, err := client.AppsV1().Deployments(Namespace).Get(t.Context(), s.name, metav1.GetOptions{})
		if s.replicas == 0 {
			if !apierrors.IsNotFound(err) {
				t.Errorf("step %d: deployment %s is still there (%v)", i, s.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; *d.Spec.Replicas != s.replicas || got != s.image {
			t.Errorf("step %d: %s has %d replicas of %s, want %d of %s", i, s.name, *d.Spec.Replicas, got, s.replicas, s.image)
		}
	}
}

func TestCycleEndsWithoutDeployments(t *testing.T) {
	client := fake.NewClientset()
	for range 2 {
		for i, s := range cycle {
			if err := s.apply(t.Context(), client); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		list, err := client.AppsV1().Deployments(Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 0 {
			t.Errorf("%d deployments are left", len(list.Items))
		}
	}
}
