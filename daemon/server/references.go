package server

import (
	"bytes"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// At /fleet, references use the names of /fleet: a pod's node is eu:node-1, and the object of an event is in namespace
// eu.web. Names of classes (StorageClass, PriorityClass, IngressClass and the like) are not changed: they usually mean
// the same in all clusters, and clients do not look objects up by them.

// refRule is what a value refers to.
type refRule uint8

const (
	noReference   refRule = iota
	clusterObject         // the name of an object without a namespace
	inNamespace           // the name of a namespace
	anyObject             // an object with kind, namespace and name
	roleReference         // an object with kind and name: a ClusterRole, or a Role of the same namespace
)

// refNode is one level of the tree of an object's references.
type refNode struct {
	rule    refRule
	members []refMember
	each    *refNode // of the elements of an array
}

type refMember struct {
	name string
	node *refNode
}

func (n *refNode) member(name string) *refNode {
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].node
		}
	}
	return nil
}

// add adds a path to the tree: names separated by dots, and [] after the name of an array.
func (n *refNode) add(path string, rule refRule) {
	for name := range strings.SplitSeq(path, ".") {
		name, array := strings.CutSuffix(name, "[]")
		next := n.member(name)
		if next == nil {
			next = &refNode{}
			n.members = append(n.members, refMember{name, next})
		}
		if n = next; array {
			if n.each == nil {
				n.each = &refNode{}
			}
			n = n.each
		}
	}
	n.rule = rule
}

// builtinReferences has the kinds whose objects have references besides those to owners.
var builtinReferences = sync.OnceValue(func() map[schema.GroupKind]*refNode {
	all := map[schema.GroupKind]*refNode{}
	refer := func(group, kind string, rule refRule, paths ...string) {
		gk := schema.GroupKind{Group: group, Kind: kind}
		if all[gk] == nil {
			all[gk] = &refNode{}
		}
		for _, p := range paths {
			all[gk].add(p, rule)
		}
	}
	refer("", "Pod", clusterObject, "spec.nodeName", "status.nominatedNodeName")
	refer("", "Event", anyObject, "involvedObject", "related")
	refer("events.k8s.io", "Event", anyObject, "regarding", "related")
	refer("", "PersistentVolume", anyObject, "spec.claimRef")
	refer("", "PersistentVolumeClaim", clusterObject, "spec.volumeName")
	refer("", "PersistentVolumeClaim", inNamespace, "spec.dataSourceRef.namespace")
	refer("", "Endpoints", clusterObject, "subsets[].addresses[].nodeName", "subsets[].notReadyAddresses[].nodeName")
	refer("", "Endpoints", anyObject, "subsets[].addresses[].targetRef", "subsets[].notReadyAddresses[].targetRef")
	refer("discovery.k8s.io", "EndpointSlice", clusterObject, "endpoints[].nodeName")
	refer("discovery.k8s.io", "EndpointSlice", anyObject, "endpoints[].targetRef")
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		refer("rbac.authorization.k8s.io", kind, inNamespace, "subjects[].namespace")
		refer("rbac.authorization.k8s.io", kind, roleReference, "roleRef")
	}
	refer("storage.k8s.io", "VolumeAttachment", clusterObject, "spec.nodeName", "spec.source.persistentVolumeName")
	refer("resource.k8s.io", "ResourceSlice", clusterObject, "spec.nodeName")
	refer("certificates.k8s.io", "PodCertificateRequest", clusterObject, "spec.nodeName")
	refer("apiregistration.k8s.io", "APIService", inNamespace, "spec.service.namespace")
	refer("apiextensions.k8s.io", "CustomResourceDefinition", inNamespace,
		"spec.conversion.webhook.clientConfig.service.namespace")
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		refer("admissionregistration.k8s.io", kind, inNamespace, "webhooks[].clientConfig.service.namespace")
	}
	return all
})

// appendReferences appends the edits of an object's references. Its metadata is between from and after.
func (f *fleetShape) appendReferences(edits []edit, obj []byte, from, after int, cluster string) []edit {
	switch {
	case f.references == nil:
		return edits
	case f.kind == schema.GroupKind{Kind: "Pod"}:
		if found, ok := appendPodNodes(edits, obj, from, after, cluster); ok {
			return found
		}
	}
	return appendBelow(edits, obj, 0, f.references, cluster)
}

// appendBelow appends the edits of the references in a value, which is at offset at of the object.
func appendBelow(edits []edit, value []byte, at int, n *refNode, cluster string) []edit {
	if n.rule != noReference {
		return appendReference(edits, value, at, n.rule, cluster)
	}
	switch {
	case len(value) > 0 && value[0] == '{':
		for i := 1; ; {
			m, next, ok := jsonscan.Next(value, i)
			if !ok {
				return edits
			}
			if !m.Escaped {
				if below := n.member(string(m.Name)); below != nil {
					edits = appendBelow(edits, value[m.From:m.To], at+m.From, below, cluster)
				}
			}
			i = next
		}
	case len(value) > 0 && value[0] == '[' && n.each != nil:
		for i := 1; ; {
			i = jsonscan.Space(value, i)
			element, next, ok := jsonscan.NextElement(value, i)
			if !ok {
				return edits
			}
			edits = appendBelow(edits, element, at+i, n.each, cluster)
			i = next
		}
	}
	return edits
}

// insert appends an edit that adds a prefix to a string that is not empty.
func insert(edits []edit, value []byte, at int, prefix string) []edit {
	if len(value) <= len(`""`) || value[0] != '"' {
		return edits
	}
	return append(edits, edit{at + 1, at + 1, prefix})
}

func appendReference(edits []edit, value []byte, at int, rule refRule, cluster string) []edit {
	switch rule {
	case clusterObject:
		return insert(edits, value, at, cluster+":")
	case inNamespace:
		return insert(edits, value, at, cluster+".")
	}
	if value[0] != '{' {
		return edits
	}
	kind := jsonscan.Text(value, "kind")
	if rule == roleReference {
		if kind == "ClusterRole" {
			edits = insertMember(edits, value, at, "name", cluster+":")
		}
		return edits
	}
	if jsonscan.Text(value, "namespace") != "" {
		return insertMember(edits, value, at, "namespace", cluster+".")
	}
	prefix := fleetPrefix(cluster, kind)
	edits = insertMember(edits, value, at, "name", prefix)
	if kind == "Node" && jsonscan.Text(value, "uid") == jsonscan.Text(value, "name") {
		// A kubelet uses the name of its node as the UID in events, and kubectl searches events by it.
		edits = insertMember(edits, value, at, "uid", prefix)
	}
	return edits
}

func insertMember(edits []edit, object []byte, at int, name, prefix string) []edit {
	if from, to, ok := jsonscan.Member(object, name); ok {
		return insert(edits, object[from:to], at+from, prefix)
	}
	return edits
}

// appendOwners appends the edits of owners that have no namespace. An object in a namespace may have owners of both
// kinds.
func (f *fleetShape) appendOwners(edits []edit, owners []byte, at int, cluster string, namespaced bool) []edit {
	if owners[0] != '[' {
		return edits
	}
	for i := 1; ; {
		i = jsonscan.Space(owners, i)
		owner, next, ok := jsonscan.NextElement(owners, i)
		if !ok {
			return edits
		}
		if owner[0] == '{' {
			kind := jsonscan.Text(owner, "kind")
			if !namespaced || f.clusterScoped(cluster, jsonscan.Text(owner, "apiVersion"), kind) {
				edits = insertMember(edits, owner, at+i, "name", fleetPrefix(cluster, kind))
			}
		}
		i = next
	}
}

var (
	nodeNameEnd   = []byte(`odeName"`)
	nodeNameStart = []byte(`"n`)
	nominated     = []byte(`"nominatedN`)
)

// appendPodNodes is a faster appendBelow for pods. Parsing a whole pod takes longer than decompressing it, and the
// name of its node comes after the containers. So this searches for the name and parses only what follows, to make
// sure that it is a member of the spec. ok is false if that is not certain.
func appendPodNodes(edits []edit, obj []byte, from, after int, cluster string) (_ []edit, ok bool) {
	if bytes.Contains(obj[:from], []byte(`"spec"`)) || bytes.Contains(obj[:from], []byte(`"status"`)) {
		return edits, false
	}
	before, unsure := len(edits), false
	for i := after; ; {
		j := bytes.Index(obj[i:], nodeNameEnd)
		if j < 0 {
			break
		}
		start, end := i+j, i+j+len(nodeNameEnd)
		i = end
		isNode, isNominated := bytes.HasSuffix(obj[:start], nodeNameStart), bytes.HasSuffix(obj[:start], nominated)
		if !isNode && !isNominated {
			continue // the end of a string, such as the fieldPath spec.nodeName of a variable
		}
		value := jsonscan.ValueBehind(obj, end)
		if value >= len(obj) || obj[value] != '"' {
			unsure = true
			continue
		}
		behind := jsonscan.Value(obj, value)
		switch rest := afterObject(obj, behind); {
		case isNode && bytes.HasPrefix(rest, []byte(`,"status":`)), string(bytes.TrimSpace(rest)) == "}":
			edits = insert(edits, obj[value:behind], value, cluster+":")
		default:
			unsure = true
		}
	}
	if unsure {
		return edits[:before], false
	}
	return edits, true
}

// afterObject returns what follows the object that contains a value which ends at i.
func afterObject(obj []byte, i int) []byte {
	for i = jsonscan.Behind(obj, i); ; {
		_, next, ok := jsonscan.Next(obj, i)
		if !ok {
			return obj[min(i+1, len(obj)):]
		}
		i = next
	}
}

// clusterOf returns the only cluster whose objects can match a field selector by a reference, such as
// spec.nodeName=eu:node-1.
func (f *fleetShape) clusterOf(label, value string) (cluster string, ok bool) {
	n := f.references
	for name := range strings.SplitSeq(label, ".") {
		switch {
		case n == nil:
			return "", false
		case n.rule == anyObject && name == "namespace":
			n = &refNode{rule: inNamespace}
		default:
			n = n.member(name)
		}
	}
	switch {
	case n == nil:
	case n.rule == clusterObject:
		cluster, _, ok = ofFleetName(value)
	case n.rule == inNamespace:
		cluster, _, ok = ofFleetNamespace(value)
	}
	return cluster, ok
}

// narrow leaves out clusters whose objects cannot match a field selector by a reference.
func (f *fleetShape) narrow(places []place, sel fields.Selector) []place {
	if f == nil || sel == nil {
		return places
	}
	for _, q := range sel.Requirements() {
		if q.Operator == selection.NotEquals {
			continue
		}
		cluster, ok := f.clusterOf(q.Field, q.Value)
		for i := range places {
			if ok && places[i].cluster == cluster {
				return places[i : i+1]
			}
		}
	}
	return places
}
