package load

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options are what to load into a cluster.
type Options struct {
	Pods       int
	Templates  int
	Namespaces int
	Seed       uint64
	// Churn is the number of changes per second to make once the pods exist; 0 for none.
	Churn float64
	// Duration ends the churn; 0 leaves that to the context.
	Duration time.Duration
	// Controllers says whether the cluster runs its controllers.
	Controllers bool
	Out         io.Writer
	// Terminal says whether Out is a terminal that can show a progress bar.
	Terminal bool
}

// The limits are far above what a test needs.
const (
	maxPods  = 1_000_000
	maxChurn = 100_000
)

// Validate returns an error if the options are not valid.
func (o Options) Validate() error {
	switch {
	case o.Pods < 1 || o.Pods > maxPods:
		return fmt.Errorf("--pods is %d: use 1 to %d", o.Pods, maxPods)
	case o.Templates < 1 || o.Templates > o.Pods:
		return fmt.Errorf("--templates is %d: use 1 to the number of pods, %d", o.Templates, o.Pods)
	case o.Namespaces < 1 || o.Namespaces > o.Templates:
		return fmt.Errorf("--namespaces is %d: use 1 to the number of templates, %d", o.Namespaces, o.Templates)
	case o.Churn < 0 || o.Churn > maxChurn:
		return fmt.Errorf("--churn is %v: use 0 to %d changes per second", o.Churn, maxChurn)
	case o.Duration < 0:
		return fmt.Errorf("--duration is %v: use a positive one", o.Duration)
	case o.Duration > 0 && o.Churn == 0:
		return errors.New("--duration is how long to keep changing pods: give --churn as well")
	}
	return nil
}
