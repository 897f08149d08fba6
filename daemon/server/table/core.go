package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var core = []entry{
	of("", "Node", node),
	of("", "Namespace", namespace),
	of("", "ConfigMap", configMap),
	of("", "Secret", secret),
	of("", "ServiceAccount", serviceAccount),
	of("", "ResourceQuota", resourceQuota),
	of("", "ComponentStatus", componentStatus),
}

func node(n *corev1.Node, now time.Time) Row {
	info := &n.Status.NodeInfo
	return cells(n.Name, nodeWord(n), nodeRoles(n), born(&n.ObjectMeta, now), info.KubeletVersion,
		nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
		or(info.OSImage, unknown), nodeKernel(info), or(info.ContainerRuntimeVersion, unknown))
}

func nodeWord(n *corev1.Node) string {
	word := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			word = "NotReady"
			if c.Status == corev1.ConditionTrue {
				word = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		word += ",SchedulingDisabled"
	}
	return word
}

// nodeRoles returns the roles of a node, which two kinds of labels may name.
func nodeRoles(n *corev1.Node) string {
	roles := map[string]struct{}{}
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok {
			value = role
		} else if key != "kubernetes.io/role" {
			continue
		}
		if value != "" {
			roles[value] = struct{}{}
		}
	}
	return or(strings.Join(slices.Sorted(maps.Keys(roles)), ","), none)
}

// nodeKernel returns the version of the kernel and the architecture.
func nodeKernel(info *corev1.NodeSystemInfo) string {
	kernel := or(info.KernelVersion, unknown)
	if info.Architecture == "" {
		return kernel
	}
	return kernel + " (" + info.Architecture + ")"
}

func nodeAddress(n *corev1.Node, t corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return none
}

func namespace(n *corev1.Namespace, now time.Time) Row {
	return cells(n.Name, string(n.Status.Phase), born(&n.ObjectMeta, now))
}

func configMap(c *corev1.ConfigMap, now time.Time) Row {
	return cells(c.Name, int64(len(c.Data)+len(c.BinaryData)), born(&c.ObjectMeta, now))
}

func secret(s *corev1.Secret, now time.Time) Row {
	return cells(s.Name, string(s.Type), int64(len(s.Data)), born(&s.ObjectMeta, now))
}

func serviceAccount(s *corev1.ServiceAccount, now time.Time) Row {
	return cells(s.Name, born(&s.ObjectMeta, now))
}

func resourceQuota(q *corev1.ResourceQuota, now time.Time) Row {
	var requests, limits []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return cells(q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), born(&q.ObjectMeta, now))
}

func componentStatus(c *corev1.ComponentStatus, _ time.Time) Row {
	word, message, fault := "Unknown", "", ""
	for _, condition := range c.Conditions {
		if condition.Type != corev1.ComponentHealthy {
			continue
		}
		word = "Unhealthy"
		if condition.Status == corev1.ConditionTrue {
			word = "Healthy"
		}
		message, fault = condition.Message, condition.Error
		if fault == "nil" { // some components write "nil" for no error
			fault = ""
		}
		break
	}
	return cells(c.Name, word, message, fault)
}
