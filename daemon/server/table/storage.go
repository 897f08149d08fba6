package table

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

var storage = []entry{
	of("", "PersistentVolume", volume),
	of("", "PersistentVolumeClaim", claim),
	of("storage.k8s.io", "StorageClass", storageClass),
	of("storage.k8s.io", "VolumeAttachment", volumeAttachment),
	of("storage.k8s.io", "VolumeAttributesClass", volumeAttributesClass, "v1", "v1beta1"),
	of("storage.k8s.io", "CSINode", csiNode),
	of("storage.k8s.io", "CSIDriver", csiDriver),
}

func volume(v *corev1.PersistentVolume, now time.Time) Row {
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	owner := ""
	if r := v.Spec.ClaimRef; r != nil {
		owner = r.Namespace + "/" + r.Name
	}
	class := v.Spec.StorageClassName
	if old, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	return cells(v.Name, storageSize(v.Spec.Capacity), accessModes(v.Spec.AccessModes),
		string(v.Spec.PersistentVolumeReclaimPolicy),
		phase, owner, class, orPtr(v.Spec.VolumeAttributesClassName, unset), v.Status.Reason, born(&v.ObjectMeta,
			now), volumeMode(v.Spec.VolumeMode))
}

func claim(c *corev1.PersistentVolumeClaim, now time.Time) Row {
	phase := string(c.Status.Phase)
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	// A claim without a volume shows neither size nor modes, whatever it requests.
	var size, modes string
	if c.Spec.VolumeName != "" {
		size, modes = storageSize(c.Status.Capacity), accessModes(c.Status.AccessModes)
	}
	class := val(c.Spec.StorageClassName)
	if old, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	return cells(c.Name, phase, c.Spec.VolumeName, size, modes, class, orPtr(c.Spec.VolumeAttributesClassName, unset),
		born(&c.ObjectMeta, now), volumeMode(c.Spec.VolumeMode))
}

func storageSize(list corev1.ResourceList) string {
	size := list[corev1.ResourceStorage]
	return size.String()
}

// accessModes returns the abbreviated modes, each once and in a fixed order.
func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	var short []string
	for _, m := range []struct {
		mode corev1.PersistentVolumeAccessMode
		text string
	}{
		{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
		{corev1.ReadWriteOncePod, "RWOP"},
	} {
		if slices.Contains(modes, m.mode) {
			short = append(short, m.text)
		}
	}
	return strings.Join(short, ",")
}

func volumeMode(m *corev1.PersistentVolumeMode) string { return or(string(val(m)), unset) }

func storageClass(c *storagev1.StorageClass, now time.Time) Row {
	name := c.Name
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	reclaim, binding := string(corev1.PersistentVolumeReclaimDelete), string(storagev1.VolumeBindingImmediate)
	if c.ReclaimPolicy != nil {
		reclaim = string(*c.ReclaimPolicy)
	}
	if c.VolumeBindingMode != nil {
		binding = string(*c.VolumeBindingMode)
	}
	return cells(name, c.Provisioner, reclaim, binding, val(c.AllowVolumeExpansion), born(&c.ObjectMeta, now))
}

func volumeAttachment(a *storagev1.VolumeAttachment, now time.Time) Row {
	return cells(a.Name, a.Spec.Attacher, val(a.Spec.Source.PersistentVolumeName), a.Spec.NodeName, a.Status.Attached,
		born(&a.ObjectMeta, now))
}

func volumeAttributesClass(c *storagev1.VolumeAttributesClass, now time.Time) Row {
	return cells(c.Name, c.DriverName, born(&c.ObjectMeta, now))
}

func csiNode(n *storagev1.CSINode, now time.Time) Row {
	return cells(n.Name, int64(len(n.Spec.Drivers)), born(&n.ObjectMeta, now))
}

func csiDriver(d *storagev1.CSIDriver, now time.Time) Row {
	attach := d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
	var audiences, modes []string
	for _, t := range d.Spec.TokenRequests {
		audiences = append(audiences, t.Audience)
	}
	for _, m := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(m))
	}
	tokens := unset
	if len(audiences) > 0 {
		tokens = strings.Join(audiences, ",")
	}
	return cells(d.Name, attach, val(d.Spec.PodInfoOnMount), val(d.Spec.StorageCapacity), tokens,
		val(d.Spec.RequiresRepublish),
		or(strings.Join(modes, ","), none), born(&d.ObjectMeta, now))
}
