package load

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options say what to load into a cluster.
type Options struct {
	Pods       int
	Templates  int
	Namespaces int
	Seed       uint64
	// Churn is the number of changes per second to keep making once the pods
	// are there; 0 makes none.
	Churn float64
	// Duration ends the churn; 0 leaves that to the context.
	Duration time.Duration
	// Controllers says whether the cluster runs its controllers.
	Controllers bool
	Out         io.Writer
	// Terminal says whether Out can show a bar that moves.
	Terminal bool
}

// Limits far above what a test needs, and below what would surprise.
const (
	maxPods  = 1_000_000
	maxChurn = 100_000
)

// Validate reports whether the options make sense.
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
