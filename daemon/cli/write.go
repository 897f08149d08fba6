package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fileFlags select the objects to write.
type fileFlags struct {
	directFlags
	files     []string
	recursive bool
}

func (f *fileFlags) add(cmd *cobra.Command) {
	f.directFlags.add(cmd)
	cmd.Flags().StringSliceVarP(&f.files, "filename", "f", nil,
		"`file` or folder of YAML or JSON, - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&f.recursive, "recursive", "R", false, "look into the folders of folders too")
}

// verb writes one object and returns the outcome.
type verb func(ctx context.Context, d *direct, p *place, obj *unstructured.Unstructured) (outcome string, err error)

// fileCommand returns a command that applies a verb to every object of files.
func fileCommand(use, short, long, example string, do verb) (*cobra.Command, *fileFlags) {
	f := &fileFlags{}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long + directHelp, Example: example,
		Args: takes(0, 0, "no arguments, but -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd, do)
		},
	}
	f.add(cmd)
	return cmd, f
}

// run reads all files first and then writes object by object. A failure does not prevent the others.
func (f *fileFlags) run(ctx context.Context, cmd *cobra.Command, do verb) error {
	all, err := readManifests(f.files, f.recursive, cmd.InOrStdin())
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return usagef("the files of -f contain no object")
	}
	d, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer d.release()
	t := &tally{out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
	for _, m := range all {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before %s: %w", m.from, context.Cause(ctx))
		}
		t.add(d.one(ctx, m, do))
	}
	return t.err(len(all))
}

// outcome is the outcome of one object.
type outcome struct {
	what string // the object, or its place in a file
	text string
	err  error
}

// one applies the verb to one object.
func (d *direct) one(ctx context.Context, m manifest, do verb) outcome {
	if m.err != nil {
		return outcome{what: m.from, err: m.err}
	}
	p, err := d.of(ctx, m.obj)
	if err != nil {
		return outcome{what: fmt.Sprintf("%s %q (%s)", m.obj.GetKind(), m.obj.GetName(), m.from), err: err}
	}
	name := m.obj.GetName()
	if name == "" {
		name = m.obj.GetGenerateName()
	}
	out := outcome{what: p.String() + "/" + name}
	out.text, out.err = do(ctx, d, p, m.obj)
	if m.obj.GetName() != "" {
		out.what = p.String() + "/" + m.obj.GetName()
	}
	out.text += d.dry()
	if out.err == nil && len(d.dryRun) == 0 && isDefinition(m.obj) {
		d.defined = true
	}
	return out
}

// tally shows outcomes and keeps the first failure.
type tally struct {
	out, errs io.Writer
	failed    int
	first     *outcome
}

func (t *tally) add(o outcome) {
	if o.err == nil {
		fmt.Fprintf(t.out, "%s %s\n", clean(o.what), o.text)
		return
	}
	fmt.Fprintf(t.errs, "%s failed: %v\n", clean(o.what), o.err)
	if t.failed++; t.first == nil {
		t.first = &o
	}
}

// err returns the command's error.
func (t *tally) err(all int) error {
	if t.first == nil {
		return nil
	}
	return &coded{exitFailed, fmt.Errorf("%d of %d failed; the first: %s: %w", t.failed, all,
		clean(t.first.what), t.first.err)}
}

func newCreate() *cobra.Command {
	cmd, _ := fileCommand("create -f FILE", "Create objects in a cluster",
		`Create the objects that files describe. One that is there already is a failure.`,
		`  mirador create -f deployment.yaml
  mirador create -f ./manifests -R --context eu
  generate | mirador create -f - --dry-run`,
		func(ctx context.Context, d *direct, p *place, obj *unstructured.Unstructured) (string, error) {
			made, err := p.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager, DryRun: d.dryRun})
			if apierrors.IsAlreadyExists(err) {
				return "", fmt.Errorf("%w; change it with mirador apply", err)
			} else if err != nil {
				return "", err
			}
			obj.SetName(made.GetName())
			return "created", nil
		})
	return cmd
}

func newApply() *cobra.Command {
	force := false
	cmd, _ := fileCommand("apply -f FILE", "Create or change objects in a cluster, by server-side apply",
		`Have the objects of a cluster be as files describe them, by server-side apply. The fields that the files
name belong to the field manager "mirador" then. A field that is another's is a conflict, and
stays as it is unless --force-conflicts is given.`,
		`  mirador apply -f deployment.yaml
  mirador apply -f ./manifests --cluster eu
  mirador apply -f deployment.yaml --force-conflicts`,
		func(ctx context.Context, d *direct, p *place, obj *unstructured.Unstructured) (string, error) {
			if obj.GetName() == "" {
				return "", errNoName
			}
			obj.SetManagedFields(nil) // server-side apply refuses objects with managed fields
			_, err := p.Apply(ctx, obj.GetName(), obj,
				metav1.ApplyOptions{FieldManager: fieldManager, Force: force, DryRun: d.dryRun})
			if apierrors.IsConflict(err) && !force {
				return "", fmt.Errorf("%w; take the fields over with --force-conflicts", err)
			}
			return "applied", err
		})
	cmd.Flags().BoolVar(&force, "force-conflicts", false, "take over fields that belong to other field managers")
	return cmd
}

func newReplace() *cobra.Command {
	cmd, _ := fileCommand("replace -f FILE", "Replace objects of a cluster",
		`Replace objects of a cluster by those that files describe, as a whole. One that is not there is a
failure. A file that names no resourceVersion replaces whatever is there now.`,
		`  mirador get deploy web -n shop --cluster eu -o yaml > web.yaml
  mirador replace -f web.yaml --context eu`,
		replaceOne)
	return cmd
}

func replaceOne(ctx context.Context, d *direct, p *place, obj *unstructured.Unstructured) (string, error) {
	if obj.GetName() == "" {
		return "", errNoName
	}
	if obj.GetResourceVersion() == "" {
		now, err := p.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", fmt.Errorf("%w; make it with mirador create or apply", err)
		} else if err != nil {
			return "", err
		}
		obj.SetResourceVersion(now.GetResourceVersion())
	}
	_, err := p.Update(ctx, obj, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: d.dryRun})
	if apierrors.IsConflict(err) {
		return "", fmt.Errorf("%w; read it again, or leave its resourceVersion out", err)
	}
	return "replaced", err
}
