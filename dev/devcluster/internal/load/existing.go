package load

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// findExisting finds the pods that exist already. Only metadata is read: there may be tens of thousands.
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

// endDeletions completes unfinished deletions: without controllers there is no kubelet to do so, and the run that
// started them may have been killed.
func (l *loader) endDeletions(ctx context.Context) error {
	if l.Controllers {
		return nil
	}
	return parallel(ctx, len(l.leaving), func(ctx context.Context, i int) error {
		if err := l.delete(ctx, l.leaving[i]); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
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
		err := retry(ctx, func(ctx context.Context) (err error) {
			page, err = l.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).List(ctx,
				options)
			return err
		})
		if err != nil {
			return fmt.Errorf("list the pods in %s: %w", namespace, err)
		}
		for _, p := range page.Items {
			l.names[namespace+"/"+p.Name] = true
			t := byName[p.Labels[Label]]
			switch {
			case t == nil:
			case p.DeletionTimestamp == nil:
				*into = append(*into, podRef{t, p.Name})
			case fields == "":
				l.leaving = append(l.leaving, podRef{t, p.Name})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
