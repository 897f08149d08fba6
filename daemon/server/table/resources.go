package table

import (
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

const resourceGroup = "resource.k8s.io"

// The kinds of dynamic resource allocation. Their beta versions have the printed fields at the same paths.
var resources = []entry{
	of(resourceGroup, "DeviceClass", deviceClass, "v1", "v1beta2", "v1beta1"),
	of(resourceGroup, "ResourceClaim", resourceClaim, "v1", "v1beta2", "v1beta1"),
	of(resourceGroup, "ResourceClaimTemplate", resourceClaimTemplate, "v1", "v1beta2", "v1beta1"),
	of(resourceGroup, "ResourceSlice", resourceSlice, "v1", "v1beta2", "v1beta1"),
}

func deviceClass(c *resourcev1.DeviceClass, now time.Time) Row {
	return cells(c.Name, born(&c.ObjectMeta, now))
}

func resourceClaim(c *resourcev1.ResourceClaim, now time.Time) Row {
	var words []string
	if c.DeletionTimestamp != nil {
		words = append(words, "deleted")
	}
	if c.Status.Allocation == nil {
		if c.DeletionTimestamp == nil {
			words = append(words, "pending")
		}
	} else {
		words = append(words, "allocated")
		if len(c.Status.ReservedFor) > 0 {
			words = append(words, "reserved")
		}
	}
	return cells(c.Name, strings.Join(words, ","), born(&c.ObjectMeta, now))
}

func resourceClaimTemplate(t *resourcev1.ResourceClaimTemplate, now time.Time) Row {
	return cells(t.Name, born(&t.ObjectMeta, now))
}

func resourceSlice(s *resourcev1.ResourceSlice, now time.Time) Row {
	return cells(s.Name, val(s.Spec.NodeName), s.Spec.Driver, s.Spec.Pool.Name, born(&s.ObjectMeta, now))
}
