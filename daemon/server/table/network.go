package table

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var network = []entry{
	of("", "Service", service),
	of("", "Endpoints", endpoints),
	of("discovery.k8s.io", "EndpointSlice", endpointSlice),
	of("networking.k8s.io", "Ingress", ingress),
	of("networking.k8s.io", "IngressClass", ingressClass),
	of("networking.k8s.io", "NetworkPolicy", networkPolicy),
	of("networking.k8s.io", "IPAddress", ipAddress, "v1", "v1beta1"),
	of("networking.k8s.io", "ServiceCIDR", serviceCIDR, "v1", "v1beta1"),
}

func service(s *corev1.Service, now time.Time) Row {
	ip := s.Spec.ClusterIP
	if len(s.Spec.ClusterIPs) > 0 {
		ip = s.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range s.Spec.Ports {
		if p.NodePort > 0 {
			ports = append(ports, fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol))
		} else {
			ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
		}
	}
	return cells(s.Name, string(s.Spec.Type), or(ip, none), serviceExternal(s), or(strings.Join(ports, ","), none),
		born(&s.ObjectMeta, now), labels.FormatLabels(s.Spec.Selector))
}

// serviceExternal returns the external addresses of a service.
func serviceExternal(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(strings.Join(s.Spec.ExternalIPs, ","), none)
	case corev1.ServiceTypeLoadBalancer:
		var all []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			all = append(all, cmp.Or(in.IP, in.Hostname))
		}
		return or(strings.Join(append(distinct(all), s.Spec.ExternalIPs...), ","), "<pending>")
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	}
	return unknown
}

// distinct sorts values and removes empty and repeated ones.
func distinct(values []string) []string {
	slices.Sort(values)
	values = slices.Compact(values)
	return slices.DeleteFunc(values, func(s string) bool { return s == "" })
}

//lint:ignore SA1019 every cluster still serves them
func endpoints(e *corev1.Endpoints, now time.Time) Row {
	var all []string
	for _, set := range e.Subsets {
		if len(set.Ports) == 0 {
			for _, a := range set.Addresses {
				all = append(all, a.IP)
			}
		}
		for _, p := range set.Ports {
			for _, a := range set.Addresses {
				all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	text := none
	if len(e.Subsets) > 0 {
		text = few(all)
	}
	return cells(e.Name, text, born(&e.ObjectMeta, now))
}

func endpointSlice(e *discoveryv1.EndpointSlice, now time.Time) Row {
	var ports, addresses []string
	for _, p := range e.Ports {
		if p.Port != nil {
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		} else {
			ports = append(ports, val(p.Name)) // without a number it means all ports
		}
	}
	for _, p := range e.Endpoints {
		addresses = append(addresses, p.Addresses...)
	}
	return cells(e.Name, string(e.AddressType), or(few(ports), unset), or(few(addresses), unset),
		born(&e.ObjectMeta, now))
}

func ingress(i *networkingv1.Ingress, now time.Time) Row {
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	var addresses []string
	for _, in := range i.Status.LoadBalancer.Ingress {
		addresses = append(addresses, cmp.Or(in.IP, in.Hostname))
	}
	return cells(i.Name, orPtr(i.Spec.IngressClassName, none), ingressHosts(i), strings.Join(distinct(addresses), ","),
		ports, born(&i.ObjectMeta, now))
}

// ingressHosts joins the first hosts. Like the server, it counts all other rules, with and without hosts.
func ingressHosts(i *networkingv1.Ingress) string {
	var hosts []string
	for _, r := range i.Spec.Rules {
		if len(hosts) == shown {
			return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(i.Spec.Rules)-shown)
		}
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	return or(strings.Join(hosts, ","), "*")
}

func ingressClass(c *networkingv1.IngressClass, now time.Time) Row {
	parameters := none
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return cells(c.Name, c.Spec.Controller, parameters, born(&c.ObjectMeta, now))
}

func networkPolicy(p *networkingv1.NetworkPolicy, now time.Time) Row {
	return cells(p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), born(&p.ObjectMeta, now))
}

// ipAddress has three cells and two columns, as at the server.
func ipAddress(a *networkingv1.IPAddress, now time.Time) Row {
	parent := none
	if r := a.Spec.ParentRef; r != nil {
		parts := []string{r.Resource, r.Namespace, r.Name}
		if r.Group != "" {
			parts[0] += "." + r.Group
		}
		parent = strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
	}
	return cells(a.Name, parent, born(&a.ObjectMeta, now))
}

func serviceCIDR(c *networkingv1.ServiceCIDR, now time.Time) Row {
	return cells(c.Name, strings.Join(c.Spec.CIDRs, ","), born(&c.ObjectMeta, now))
}
