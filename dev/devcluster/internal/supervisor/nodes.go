package supervisor

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// MaxNodes is the number of nodes that fit into the pod address range.
const MaxNodes = 1000

// zones is the number of zones that the nodes are spread over.
const zones = 3

// createNodes creates the fake nodes that do not exist yet. A resumed cluster keeps the nodes it has.
func createNodes(ctx context.Context, client kubernetes.Interface, n int) error {
	for i := range n {
		_, err := client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{FieldManager: "kubelet"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", nodeName(i), err)
		}
	}
	return nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// node describes a large machine: the control plane should limit a test, not the capacity of the nodes.
func node(i int) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		corev1.ResourcePods:             resource.MustParse("50k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(i),
			Labels: map[string]string{
				corev1.LabelHostname:       nodeName(i),
				corev1.LabelOSStable:       "linux",
				corev1.LabelArchStable:     "amd64",
				corev1.LabelTopologyRegion: "local",
				corev1.LabelTopologyZone:   fmt.Sprintf("zone-%c", 'a'+i%zones),
				"type":                     "kwok",
			},
			Annotations: map[string]string{
				part.NodeAnnotation:            part.NodeAnnotationValue,
				"node.alpha.kubernetes.io/ttl": "0",
			},
		},
		Spec: corev1.NodeSpec{
			PodCIDR:  podRange(i).String(),
			PodCIDRs: []string{podRange(i).String()},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP(i).String()},
				{Type: corev1.NodeHostName, Address: nodeName(i)},
			},
		},
	}
}

// podRange returns a node's 16,384 pod addresses out of 10.0.0.0/8.
func podRange(i int) netip.Prefix {
	const bits = 18
	first := uint32(10)<<24 | uint32(i)<<(32-bits)
	return netip.PrefixFrom(ipv4(first), bits)
}

// nodeIP returns a node's address in 192.168.0.0/16.
func nodeIP(i int) netip.Addr { return ipv4(uint32(192)<<24 | uint32(168)<<16 | uint32(i+10)) }

func ipv4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
