package table

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var pods = []entry{
	of("", "Pod", pod),
	of("", "PodTemplate", podTemplate),
}

func pod(p *corev1.Pod, now time.Time) Row {
	s := summarize(p)
	ip := p.Status.PodIP
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return Row{
		Cells: []any{p.Name, fmt.Sprintf("%d/%d", s.ready, s.total), s.word, s.restarts.text(now), born(&p.ObjectMeta, now),
			or(ip, none), or(p.Spec.NodeName, none), or(p.Status.NominatedNodeName, none), readinessGates(p)},
		Conditions: ended(p.Status.Phase),
	}
}

// ended is the row condition of pods that will not run again.
func ended(phase corev1.PodPhase) []metav1.TableRowCondition {
	var words string
	switch phase {
	case corev1.PodSucceeded:
		words = "The pod has completed successfully."
	case corev1.PodFailed:
		words = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue,
		Reason: string(phase), Message: words}}
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, gate := range p.Spec.ReadinessGates {
		if podCondition(p, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}

// podCondition reports whether a condition is true. The first one of its type counts.
func podCondition(p *corev1.Pod, t corev1.PodConditionType) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	return i >= 0 && p.Status.Conditions[i].Status == corev1.ConditionTrue
}

// restarts counts restarts of containers.
type restarts struct {
	count int
	last  metav1.Time // when the last restarted container had ended
}

func (r *restarts) add(c *corev1.ContainerStatus) {
	r.count += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && r.last.Before(&t.FinishedAt) {
		r.last = t.FinishedAt
	}
}

func (r *restarts) text(now time.Time) string {
	if r.count == 0 || r.last.IsZero() {
		return strconv.Itoa(r.count)
	}
	return fmt.Sprintf("%d (%s ago)", r.count, age(r.last, now))
}

// summary has the status and the counts of a pod.
type summary struct {
	word         string
	ready, total int
	restarts     restarts
	sidecars     restarts // of init containers that keep running
}

// summarize computes the pod's status. Later sources override earlier ones: its phase, its reason, its containers, and
// its deletion.
func summarize(p *corev1.Pod) summary {
	s := summary{word: or(p.Status.Reason, string(p.Status.Phase)), total: len(p.Spec.Containers)}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.word = corev1.PodReasonSchedulingGated
		}
	}
	if initializing := s.initContainers(p); !initializing || podCondition(p, corev1.PodInitialized) {
		s.containers(p)
	}
	terminal := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	switch {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.word = "Unknown"
	case !terminal:
		s.word = "Terminating"
	}
	return s
}

// initContainers examines the init containers up to the first unfinished one, and reports whether there is one.
func (s *summary) initContainers(p *corev1.Pod) bool {
	sidecars := map[string]bool{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; val(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.total++
		}
	}
	for i := range p.Status.InitContainerStatuses {
		c := &p.Status.InitContainerStatuses[i]
		s.restarts.add(c)
		if sidecars[c.Name] {
			s.sidecars.add(c)
		}
		ended := c.State.Terminated
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecars[c.Name] && val(c.Started):
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.word = "Init:" + endWord(ended)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.word = "Init:" + c.State.Waiting.Reason
		default:
			s.word = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

// containers examines the containers. The first one overrides the others.
func (s *summary) containers(p *corev1.Pod) {
	s.restarts = s.sidecars
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		s.restarts.add(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.word = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.word = endWord(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	// A pod with running containers is not completed.
	if s.word == "Completed" && running {
		s.word = "NotReady"
		if podCondition(p, corev1.PodReady) {
			s.word = "Running"
		}
	}
}

// endWord returns how a container ended.
func endWord(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func podTemplate(t *corev1.PodTemplate, _ time.Time) Row {
	names, images := containers(t.Template.Spec.Containers)
	return cells(t.Name, names, images, labels.FormatLabels(t.Template.Labels))
}
