package load

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// findExisting learns which pods are there already. Only metadata is read:
// there may be tens of thousands.
func (l *loader) findExisting(ctx context.Context) error {
	for i := range l.Namespaces {
		if err := l.list(ctx, namespaceName(i), "", &l.existing); err != nil {
			return err
		}
		if err := l.list(ctx, namespaceName(i), "status.phase=Pending", &l.pending); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) list(ctx context.Context, namespace, fields string, into *[]podRef) error {
	byName := map[string]*template{}
	for _, t := range l.templates {
		if t.namespace == namespace {
			byName[t.name] = t
		}
	}
	options := metav1.ListOptions{LabelSelector: Label, FieldSelector: fields, Limit: 5000}
	for {
		var page *metav1.PartialObjectMetadataList
		err := retry(ctx, func() (err error) {
			page, err = l.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).List(ctx, options)
			return err
		})
		if err != nil {
			return fmt.Errorf("list the pods in %s: %w", namespace, err)
		}
		for _, p := range page.Items {
			l.names[namespace+"/"+p.Name] = true
			if t := byName[p.Labels[Label]]; t != nil && p.DeletionTimestamp == nil {
				*into = append(*into, podRef{t, p.Name})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
