package testpods

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// costAnnotation is the only field of a pod that a small custom controller writes, so that pods have a third manager.
const costAnnotation = "cost.example.com/center"

// listKeys are the fields that identify the items of a list in managedFields; a list that is not here is owned as a
// whole.
var listKeys = map[string][]string{
	"ownerReferences":           {"uid"},
	"containers":                {"name"},
	"volumes":                   {"name"},
	"env":                       {"name"},
	"ports":                     {"containerPort", "protocol"},
	"volumeMounts":              {"mountPath"},
	"conditions":                {"type"},
	"podIPs":                    {"ip"},
	"hostIPs":                   {"ip"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
}

// atomicFields are maps that are owned as a whole.
var atomicFields = map[string]bool{"nodeSelector": true, "resourceFieldRef": true, "fieldRef": true,
	"secretKeyRef": true}

// managedFields returns the managers of a pod's fields as a server records them: the controller that created it, a
// small controller that annotates, and the kubelet. The kubelet's fields contain the pod's address, so they are also
// returned as a text to fill in.
func managedFields(pod *corev1.Pod) ([]metav1.ManagedFieldsEntry, string) {
	meta := fieldsOf(map[string]any{
		"generateName": "", "labels": asTree(pod.Labels), "annotations": asTree(pod.Annotations),
		"ownerReferences": asTree(pod.OwnerReferences),
	}, "metadata")
	delete(meta["f:annotations"].(map[string]any), "f:"+costAnnotation)
	created := map[string]any{"f:metadata": meta, "f:spec": fieldsOf(asTree(pod.Spec), "spec")}

	annotated := map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" +
		costAnnotation: map[string]any{}}}}

	status := asTree(pod.Status).(map[string]any)
	status["startTime"], status["hostIP"], status["podIP"] = "", "", ""
	status["hostIPs"] = []any{}
	status["podIPs"] = []any{map[string]any{"ip": ipPlaceholder}}
	for _, c := range status["conditions"].([]any) {
		c.(map[string]any)["lastProbeTime"], c.(map[string]any)["lastTransitionTime"] = "", ""
	}
	delete(status, "qosClass") // set by the server
	statusFields := map[string]any{"f:status": fieldsOf(status, "status")}

	text := encode(statusFields)
	entry := func(manager, fields, subresource string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", Subresource: subresource,
		}
		setFields(&e, fields)
		return e
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", encode(created), ""),
		entry("cost-annotator", encode(annotated), ""),
		entry("kubelet", text, "status"),
	}, text
}

// setFields sets the fields of an entry. The text must not be used elsewhere.
func setFields(entry *metav1.ManagedFieldsEntry, text string) {
	entry.FieldsV1 = metav1.NewFieldsV1(text)
}

// fieldsOf turns an object into the set of its fields.
func fieldsOf(value any, name string) map[string]any {
	set := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		if atomicFields[name] {
			return set
		}
		if name != "metadata" && name != "spec" && name != "status" && len(v) > 0 && ownsItself[name] {
			set["."] = map[string]any{}
		}
		for key, child := range v {
			set["f:"+key] = fieldsOf(child, key)
		}
	case []any:
		keys := listKeys[name]
		if keys == nil {
			return set
		}
		set["."] = map[string]any{}
		for _, item := range v {
			fields := fieldsOf(item, "")
			fields["."] = map[string]any{}
			set[itemKey(item.(map[string]any), keys)] = fields
		}
	}
	return set
}

// ownsItself are the structs and maps whose presence is owned too.
var ownsItself = map[string]bool{
	"labels": true, "annotations": true, "resources": true, "limits": true, "requests": true, "livenessProbe": true,
	"readinessProbe": true, "startupProbe": true, "httpGet": true, "tcpSocket": true,
	"valueFrom": true, "configMap": true,
	"secret": true, "emptyDir": true, "securityContext": true, "capabilities": true,
}

func itemKey(item map[string]any, keys []string) string {
	by := map[string]any{}
	for _, key := range keys {
		by[key] = item[key]
	}
	return "k:" + encode(by)
}

func asTree(value any) any {
	var tree any
	if err := json.Unmarshal([]byte(encode(value)), &tree); err != nil {
		panic(fmt.Sprintf("decode JSON that was encoded here: %v", err))
	}
	return tree
}

func encode(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Sprintf("encode a value as JSON: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
