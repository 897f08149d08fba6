// Package dynamicclient creates a Deployment from YAML with a client that does not know the type, and then reads,
// changes and deletes resources of any kind with the same functions.
//
// Corrected in the original program: a variable err that was not declared, and the namespace, which is an argument
// instead of a part of the YAML. The original says that any resource can be read, changed and deleted in this way; here
// that is shown.
package dynamicclient

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	clientset "github.com/mirador-k8s/mirador/examples/16-clientset"
)

//go:embed tpls/deployment.yaml
var deployTpl string

// Run is the original program.
func Run(ctx context.Context, kubeconfig, namespace string, out io.Writer) error {
	config, err := clientset.NewK8sConfig(kubeconfig)
	if err != nil {
		return err
	}
	dynamicCli, err := config.InitDynamicClient()
	if err != nil {
		return err
	}

	deployGVR := schema.GroupVersionResource{
		Group:    "apps",
		Version:  "v1",
		Resource: "deployments",
	}
	deployObj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(deployTpl), deployObj); err != nil {
		return err
	}
	if _, err = dynamicCli.
		Resource(deployGVR).
		Namespace(namespace).
		Create(ctx, deployObj, metav1.CreateOptions{}); err != nil {
		return err
	}
	fmt.Fprintln(out, "Create deploy succeed")

	if err := readChangeDelete(ctx, dynamicCli.Resource(deployGVR).Namespace(namespace), "myngx",
		`{"spec":{"replicas":3}}`, []string{"spec", "replicas"}, out); err != nil {
		return err
	}

	// The same for another kind of resource: only its name differs.
	configMaps := dynamicCli.Resource(schema.GroupVersionResource{Version: "v1",
		Resource: "configmaps"}).Namespace(namespace)
	return readChangeDelete(ctx, configMaps, "my-config",
		`{"data":{"colour":"red"}}`, []string{"data", "colour"}, out)
}

// readChangeDelete reads an object of any kind, changes one field and deletes it.
func readChangeDelete(ctx context.Context, objects dynamic.ResourceInterface, name, patch string, field []string,
	out io.Writer) error {
	before, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	after, err := objects.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	was, _, err := unstructured.NestedFieldNoCopy(before.Object, field...)
	if err != nil {
		return err
	}
	is, _, err := unstructured.NestedFieldNoCopy(after.Object, field...)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, before.GetKind(), name, field, ":", was, "->", is)
	if err := objects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = objects.Get(ctx, name, metav1.GetOptions{})
	fmt.Fprintln(out, before.GetKind(), name, "is gone:", apierrors.IsNotFound(err))
	return nil
}
