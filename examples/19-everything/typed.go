package everything

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/factory"
)

// Typed mirrors everything with the typed factory, which handles discovery, its partial failures and its verbs; Refresh
// would follow custom resources that are installed and removed. The program reads only names, so it mirrors only
// metadata, which takes a fraction of the memory.
func Typed(ctx context.Context, config *rest.Config, namespace string, out io.Writer) (err error) {
	f, err := factory.New(config, nil)
	if err != nil {
		return err
	}
	all, err := factory.All(ctx, f, f.Metadata, nil)
	if err != nil {
		return err
	}
	if err := f.Start(ctx); err != nil {
		return err
	}
	defer func() {
		if stopped := f.Stop(context.WithoutCancel(ctx)); err == nil {
			err = stopped
		}
	}()
	if err := f.WaitForSync(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "resources mirrored:", len(all.Handles()))
	var lines []string
	for _, h := range all.Handles() {
		objs, err := h.Lister().InNamespace(namespace).List(labels.Everything())
		if err != nil {
			return err
		}
		for _, obj := range objs {
			lines = append(lines, line(h.Resource(), obj.Name))
		}
	}
	show(out, lines)
	return nil
}
