package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

var patchTypes = map[string]types.PatchType{
	"json": types.JSONPatchType, "merge": types.MergePatchType, "strategic": types.StrategicMergePatchType,
}

func newPatch() *cobra.Command {
	var (
		d           directFlags
		patch, kind string
	)
	cmd := &cobra.Command{
		Use:   "patch RESOURCE NAME -p PATCH",
		Short: "Change fields of an object in a cluster",
		Long: `Change fields of one object. The patch is JSON or YAML. Custom resources take the types merge and
json only.` + directHelp,
		Example: `  mirador patch deploy web -n shop -p '{"spec":{"replicas":3}}'
  mirador patch node node-1 --type json -p '[{"op":"add","path":"/metadata/labels/zone","value":"a"}]'`,
		Args: takes(1, 2, "a resource and a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			resource, name, err := oneName(args)
			if err != nil {
				return err
			}
			typ, ok := patchTypes[kind]
			switch {
			case !ok:
				return usagef("--type is json, merge or strategic, not %q", kind)
			case patch == "":
				return usagef("--patch is missing; give what is to change, as JSON or YAML")
			}
			data, err := yaml.YAMLToJSON([]byte(patch))
			if err != nil {
				return usagef("the patch is neither JSON nor YAML: %w", withoutText(err))
			}
			line, err := d.patch(cmd.Context(), resource, name, typ, data)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return err
		},
	}
	d.add(cmd)
	cmd.Flags().StringVarP(&patch, "patch", "p", "", "the `patch`")
	cmd.Flags().StringVar(&kind, "type", "strategic", "`type` of the patch: json, merge or strategic")
	complete(cmd, "type", cobra.FixedCompletions([]string{"json", "merge", "strategic"},
		cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = d.completeObjects
	return cmd
}

// patch patches one object and returns its outcome.
func (f *directFlags) patch(ctx context.Context, resource, name string, typ types.PatchType,
	data []byte) (string, error) {
	d, err := f.open(ctx)
	if err != nil {
		return "", err
	}
	defer d.release()
	p, err := d.named(ctx, resource)
	if err != nil {
		return "", err
	}
	_, err = p.Patch(ctx, name, typ, data, metav1.PatchOptions{FieldManager: fieldManager, DryRun: d.dryRun})
	if err != nil {
		return "", fmt.Errorf("patch %s/%s: %w", p, name, ofName(err))
	}
	return fmt.Sprintf("%s/%s patched%s", p, name, d.dry()), nil
}

// ofName adds the exit code to an error of a request for one name.
func ofName(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return notFound(fmt.Errorf("%w; look elsewhere with -n or --context", err))
	case apierrors.IsUnsupportedMediaType(err):
		return fmt.Errorf("%w; give --type merge or json", err)
	}
	return ofCluster(err)
}
