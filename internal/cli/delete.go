package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func newDelete() *cobra.Command {
	var (
		f      fileFlags
		ignore bool
	)
	cmd := &cobra.Command{
		Use:   "delete RESOURCE NAME… | -f FILE",
		Short: "Delete objects from a cluster",
		Long: `Delete objects by name, or those that files describe. What they own is deleted after them, in the
background; this command does not wait for that.` + directHelp,
		Example: `  mirador delete pod web-0 -n shop
  mirador delete -f ./manifests --context eu --ignore-not-found`,
		Args: takes(0, -1, "a resource and names, or -f"),
		RunE: func(cmd *cobra.Command, args []string) error {
			del := deletion(ignore)
			switch {
			case len(args) > 0 && len(f.files) > 0:
				return usagef("give names or -f, not both")
			case len(args) == 0:
				return f.run(cmd.Context(), cmd, del)
			}
			resource, names, err := splitNames(args)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				return usagef("delete takes names after the resource; it never deletes all of one")
			}
			return f.deleteNames(cmd.Context(), cmd, resource, names, del)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&ignore, "ignore-not-found", false, "an object that is not there is no failure")
	cmd.ValidArgsFunction = f.completeFirst
	return cmd
}

// deletion deletes one object.
func deletion(ignore bool) verb {
	return func(ctx context.Context, d *direct, p *place, obj *unstructured.Unstructured) (string, error) {
		if obj.GetName() == "" {
			return "", errNoName
		}
		policy := metav1.DeletePropagationBackground
		err := p.Delete(ctx, obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy, DryRun: d.dryRun})
		if apierrors.IsNotFound(err) && ignore {
			return "not there", nil
		}
		return "deleted", err
	}
}

// deleteNames deletes objects of one resource. If all that went wrong is that a name is not there, the
// exit code says so.
func (f *fileFlags) deleteNames(ctx context.Context, cmd *cobra.Command, resource string, names []string, del verb) error {
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer d.release()
	p, err := d.named(ctx, resource)
	if err != nil {
		return err
	}
	t := &tally{out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
	absent := 0
	for _, name := range names {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before %s/%s: %w", p, name, context.Cause(ctx))
		}
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetName(name)
		text, err := del(ctx, d, p, obj)
		if apierrors.IsNotFound(err) {
			absent++
		}
		t.add(outcome{what: p.String() + "/" + name, text: text + d.dry(), err: err})
	}
	err = t.err(len(names))
	if err != nil && absent == t.failed {
		return notFound(err)
	}
	return err
}
