package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

var workloads = []entry{
	of("apps", "Deployment", deployment),
	of("apps", "ReplicaSet", replicaSet),
	of("apps", "StatefulSet", statefulSet),
	of("apps", "DaemonSet", daemonSet),
	of("apps", "ControllerRevision", controllerRevision),
	of("", "ReplicationController", replicationController),
	of("batch", "Job", job),
	of("batch", "CronJob", cronJob),
}

func deployment(d *appsv1.Deployment, now time.Time) Row {
	names, images := containers(d.Spec.Template.Spec.Containers)
	return cells(d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, val(d.Spec.Replicas)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas), born(&d.ObjectMeta, now),
		names, images, metav1.FormatLabelSelector(d.Spec.Selector))
}

func replicaSet(r *appsv1.ReplicaSet, now time.Time) Row {
	names, images := containers(r.Spec.Template.Spec.Containers)
	return cells(r.Name, int64(val(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas),
		born(&r.ObjectMeta, now), names, images, metav1.FormatLabelSelector(r.Spec.Selector))
}

func replicationController(r *corev1.ReplicationController, now time.Time) Row {
	var names, images string
	if r.Spec.Template != nil {
		names, images = containers(r.Spec.Template.Spec.Containers)
	}
	return cells(r.Name, int64(val(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas),
		born(&r.ObjectMeta, now), names, images, labels.FormatLabels(r.Spec.Selector))
}

func statefulSet(s *appsv1.StatefulSet, now time.Time) Row {
	names, images := containers(s.Spec.Template.Spec.Containers)
	return cells(s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, val(s.Spec.Replicas)),
		born(&s.ObjectMeta, now), names, images)
}

func daemonSet(d *appsv1.DaemonSet, now time.Time) Row {
	names, images := containers(d.Spec.Template.Spec.Containers)
	return cells(d.Name, int64(d.Status.DesiredNumberScheduled), int64(d.Status.CurrentNumberScheduled),
		int64(d.Status.NumberReady), int64(d.Status.UpdatedNumberScheduled), int64(d.Status.NumberAvailable),
		labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), born(&d.ObjectMeta, now),
		names, images, metav1.FormatLabelSelector(d.Spec.Selector))
}

func controllerRevision(c *appsv1.ControllerRevision, now time.Time) Row {
	owner := none
	if ref := metav1.GetControllerOf(c); ref != nil {
		gk := schema.GroupKind{Kind: ref.Kind}
		if gv, err := schema.ParseGroupVersion(ref.APIVersion); err == nil {
			gk.Group = gv.Group
		}
		owner = strings.ToLower(gk.String()) + "/" + ref.Name
	}
	return cells(c.Name, owner, c.Revision, born(&c.ObjectMeta, now))
}

func job(j *batchv1.Job, now time.Time) Row {
	names, images := containers(j.Spec.Template.Spec.Containers)
	return cells(j.Name, jobWord(j), jobCompletions(j), jobDuration(j, now), born(&j.ObjectMeta, now),
		names, images, metav1.FormatLabelSelector(j.Spec.Selector))
}

// jobWord returns the status of a job.
func jobWord(j *batchv1.Job) string {
	switch {
	case jobCondition(j, batchv1.JobComplete):
		return "Complete"
	case jobCondition(j, batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case jobCondition(j, batchv1.JobSuspended):
		return "Suspended"
	case jobCondition(j, batchv1.JobFailureTarget):
		return "FailureTarget"
	case jobCondition(j, batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

// jobCondition reports whether a condition is true.
func jobCondition(j *batchv1.Job, t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

func jobCompletions(j *batchv1.Job) string {
	switch {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case val(j.Spec.Parallelism) > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, *j.Spec.Parallelism)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

// jobDuration returns how long the job took, or has taken so far. A failed job has no completion time, so, as at the
// server, its duration keeps growing.
func jobDuration(j *batchv1.Job, now time.Time) string {
	if j.Status.StartTime == nil {
		return ""
	}
	end := now
	if j.Status.CompletionTime != nil {
		end = j.Status.CompletionTime.Time
	}
	return duration.HumanDuration(end.Sub(j.Status.StartTime.Time))
}

func cronJob(c *batchv1.CronJob, now time.Time) Row {
	last := none
	if c.Status.LastScheduleTime != nil {
		last = age(*c.Status.LastScheduleTime, now)
	}
	template := &c.Spec.JobTemplate.Spec
	names, images := containers(template.Template.Spec.Containers)
	return cells(c.Name, c.Spec.Schedule, orPtr(c.Spec.TimeZone, none), whether(c.Spec.Suspend),
		int64(len(c.Status.Active)),
		last, born(&c.ObjectMeta, now), names, images, metav1.FormatLabelSelector(template.Selector))
}
