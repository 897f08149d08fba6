package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deleteCommand deletes objects by name, by selector or by files.
type deleteCommand struct {
	fileFlags
	ignore, all, everywhere bool
	labels, fields          string
	grace                   int64
}

func newDelete() *cobra.Command {
	c := &deleteCommand{}
	cmd := &cobra.Command{
		Use:   "delete RESOURCE[,RESOURCE…] NAME… | RESOURCE -l SELECTOR | RESOURCE --all | -f FILE",
		Short: "Delete objects from a cluster",
		Long: `Delete objects by name, by a selector, all of a resource in a namespace, or those that files describe. What
is selected is what the cluster itself has, not what a mirror knew. What the objects own is deleted after
them, in the background; this command does not wait for that.` + directHelp,
		Example: `  mirador delete pod web-0 -n shop
  mirador delete pod/web-0 service/web -n shop
  mirador delete pods,services -l app=web -n shop --dry-run
  mirador delete configmaps --all -n scratch
  mirador delete -f ./manifests --context eu --ignore-not-found`,
		Args: takes(0, -1, "a resource with names, -l or --all, or -f"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	c.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.ignore, "ignore-not-found", false, "do not fail if an object does not exist")
	flags.StringVarP(&c.labels, "selector", "l", "", "delete what this label `selector` matches")
	flags.StringVar(&c.fields, "field-selector", "",
		"delete what this field `selector` matches; the cluster knows few fields")
	flags.BoolVar(&c.all, "all", false, "delete all objects of the resource, in the namespace")
	flags.BoolVarP(&c.everywhere, "all-namespaces", "A", false, "with -l, --field-selector or --all, in all namespaces")
	flags.Int64Var(&c.grace, "grace-period", -1, "`seconds` that a pod has to terminate (default: its own)")
	cmd.ValidArgsFunction = c.completeObjects
	return cmd
}

// selects reports whether objects are selected and not named.
func (c *deleteCommand) selects() bool { return c.labels != "" || c.fields != "" || c.all }

func (c *deleteCommand) run(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && len(c.files) > 0:
		return usagef("give names or -f, not both")
	case len(args) == 0 && c.selects():
		return usagef("-l, --field-selector and --all need a resource; name it, as in delete pods -l app=web")
	case c.all && (c.labels != "" || c.fields != ""):
		return usagef("--all and a selector do not go together; give one of the two")
	case c.everywhere && !c.selects():
		return usagef("-A is for -l, --field-selector and --all; a name is of one namespace, given with -n")
	case c.everywhere && c.namespace != "":
		return usagef("--namespace and --all-namespaces do not go together; give one of the two")
	case len(args) == 0:
		return c.fileFlags.run(cmd.Context(), cmd, c.deleteOne)
	}
	all, err := splitNames(args)
	if err != nil {
		return err
	}
	named := slices.ContainsFunc(all, func(w wanted) bool { return len(w.names) > 0 })
	switch {
	case named && c.selects():
		return usagef("names and a selector do not go together; give one of the two")
	case !named && !c.selects():
		return usagef("delete takes names after the resource, or -l, or --all for all of it")
	}
	return c.objects(cmd.Context(), cmd, all)
}

// deleteOne deletes one object. A selected object is deleted only if it is unchanged.
func (c *deleteCommand) deleteOne(ctx context.Context, d *direct, p *place,
	obj *unstructured.Unstructured) (string, error) {
	if obj.GetName() == "" {
		return "", errNoName
	}
	policy := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &policy, DryRun: d.dryRun}
	if c.grace >= 0 {
		opts.GracePeriodSeconds = &c.grace
	}
	if uid := obj.GetUID(); uid != "" && c.selects() {
		opts.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := p.Delete(ctx, obj.GetName(), opts)
	if apierrors.IsNotFound(err) && (c.ignore || c.selects()) {
		return "not there", nil
	}
	return "deleted", err
}

// objects deletes named or selected objects. If the only errors are missing names, the exit code is that of a missing
// name.
func (c *deleteCommand) objects(ctx context.Context, cmd *cobra.Command, all []wanted) error {
	d, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer d.release()
	t := &tally{out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
	absent, tried := 0, 0
	for _, w := range all {
		places, err := d.namedAll(ctx, w.resource)
		if err != nil {
			return err
		}
		for _, p := range places {
			objs, err := c.targets(ctx, d, p, w.names)
			if err != nil {
				return err
			}
			tried += len(objs)
			for i := range objs {
				if ctx.Err() != nil {
					return fmt.Errorf("stopped before %s/%s: %w", p, objs[i].GetName(), context.Cause(ctx))
				}
				text, err := c.deleteOne(ctx, d, d.within(p, &objs[i]), &objs[i])
				if apierrors.IsNotFound(err) {
					absent++
				}
				if ns := objs[i].GetNamespace(); c.everywhere && ns != "" {
					text += " in namespace " + ns
				}
				t.add(outcome{what: p.String() + "/" + objs[i].GetName(), text: text + d.dry(), err: err})
			}
		}
	}
	if tried == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing found, nothing deleted")
	}
	err = t.err(tried)
	if err != nil && absent == t.failed {
		return notFound(err)
	}
	return err
}

// targets returns the named objects, or those that the cluster selects.
func (c *deleteCommand) targets(ctx context.Context, d *direct, p *place,
	names []string) (out []unstructured.Unstructured, err error) {
	for _, name := range names {
		obj := unstructured.Unstructured{Object: map[string]any{}}
		obj.SetName(name)
		out = append(out, obj)
	}
	if !c.selects() {
		return out, nil
	}
	from := p.ResourceInterface
	if c.everywhere {
		from = d.client.Resource(p.gvr)
	}
	opts := metav1.ListOptions{LabelSelector: c.labels, FieldSelector: c.fields, Limit: pageSize}
	for {
		list, err := from.List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("find the %s to delete: %w", p.gvr.Resource, ofCluster(err))
		}
		out = append(out, list.Items...)
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return out, nil
		}
	}
}
