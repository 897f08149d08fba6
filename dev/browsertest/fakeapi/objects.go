package fakeapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// base is an initial pod: enough to make the rest on request.
type base struct{ namespace, name string }

// Pod is an object of the fake, of any resource; pods have more fields.
type Pod struct {
	Cluster, Namespace, Name string
	App, Status              string
	Restarts                 int
	Version                  int64
	index                    int
}

var apps = []string{"api", "cart", "mail", "search", "web"}

// makePods returns pods in the order of their keys: 20 namespaces with five applications each.
func makePods(n int) []base {
	pods := make([]base, n)
	for i := range pods {
		namespace := i * 20 / n
		start, end := (namespace*n+19)/20, ((namespace+1)*n+19)/20
		app := apps[(i-start)*len(apps)/max(1, end-start)]
		pods[i] = base{fmt.Sprintf("team-%02d", namespace), fmt.Sprintf("%s-%05d-%05x", app, i, (i*2654435761)&0xfffff)}
	}
	return pods
}

func (b base) pod(cluster string, i int) Pod {
	app, _, _ := strings.Cut(b.name, "-")
	p := Pod{Cluster: cluster, Namespace: b.namespace, Name: b.name, App: app, Status: "Running", Version: 1000, index: i}
	switch {
	case i%97 == 13:
		p.Status = "Pending"
	case i%211 == 40:
		p.Status, p.Restarts = "CrashLoopBackOff", 7
	case i%53 == 7:
		p.Status = "Completed"
	}
	return p
}

func (p Pod) key() string { return p.Cluster + "\x00" + p.Namespace + "/" + p.Name }

func (p Pod) labels() map[string]string {
	tier := "back"
	if p.App == "web" || p.App == "api" {
		tier = "front"
	}
	return map[string]string{"app": p.App, "tier": tier}
}

// began is the reference for the ages of all objects.
var began = time.Now()

func (p Pod) created() time.Time {
	return began.Add(-time.Duration(p.index%4000)*time.Minute - 90*time.Second).Truncate(time.Second)
}

// metadata returns the object's metadata, in a cluster's own view or in the fleet's.
func (p Pod) metadata(fleet bool) object {
	m := object{"name": p.Name, "uid": fmt.Sprintf("%08x-0000-4000-8000-%012x", p.index, p.index),
		"resourceVersion":   fmt.Sprint(p.Version),
		"creationTimestamp": p.created().UTC().Format(time.RFC3339), "labels": p.labels()}
	notes := object{"example.com/script": "#!/bin/sh\nset -e\n\techo \"hello\"\n", "example.com/yes": "yes",
		"example.com/number": "0123", "example.com/html": "<img src=x onerror=alert(1)>"}
	if p.Namespace != "" {
		m["namespace"] = p.Namespace
	}
	if fleet {
		notes["mirador.dev/cluster"] = p.Cluster
		if p.Namespace != "" {
			m["namespace"] = p.Cluster + "." + p.Namespace
		} else {
			m["name"] = p.Cluster + ":" + p.Name
		}
	}
	m["annotations"] = notes
	return m
}

// JSON returns the whole object as the server sends it.
func (p Pod) JSON(kind, apiVersion string, fleet bool) []byte {
	meta := p.metadata(fleet)
	meta["managedFields"] = []object{{"manager": "kubelet", "operation": "Update",
		"fieldsV1": object{"f:status": object{}}}}
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	if kind == "Pod" {
		o["spec"] = object{
			"nodeName": fmt.Sprintf("node-%d", p.index%40),
			"containers": []object{{"name": p.App, "image": "registry.example.com/" + p.App + ":1.25",
				"command": []string{"sh", "-c", "while :; do\n  date\ndone"}, "ports": []object{{"containerPort": 8080}},
				"env": []object{}}},
			"terminationGracePeriodSeconds": 30,
			"large":                         json.Number("9223372036854775807"),
		}
		o["status"] = object{"phase": p.phase(),
			"containerStatuses": []object{{"name": p.App, "restartCount": p.Restarts}},
			"podIP":             fmt.Sprintf("10.%d.%d.%d", p.index>>16, p.index>>8&255, p.index&255)}
	}
	raw, _ := json.Marshal(o)
	return raw
}

func (p Pod) phase() string {
	switch p.Status {
	case "Completed":
		return "Succeeded"
	case "CrashLoopBackOff":
		return "Running"
	}
	return p.Status
}

type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int    `json:"priority"`
}

func columns(kind string, fleet bool) (cols []column) {
	if fleet {
		cols = append(cols, column{Name: "Cluster", Type: "string"})
	}
	cols = append(cols, column{Name: "Name", Type: "string", Format: "name"})
	if kind != "Pod" {
		return append(cols, column{Name: "Age", Type: "date"})
	}
	return append(cols, column{Name: "Ready", Type: "string"}, column{Name: "Status", Type: "string"},
		column{Name: "Restarts", Type: "string"},
		column{Name: "Age", Type: "string"}, column{Name: "IP", Type: "string", Priority: 1}, column{Name: "Node",
			Type: "string", Priority: 1})
}

// row returns a row of a Table. Its object is the metadata, as from the server, but without annotations, which the
// page does not use and which would be the largest part of 50,000 rows.
func (p Pod) row(kind string, fleet bool) object {
	meta := p.metadata(fleet)
	delete(meta, "annotations")
	if fleet {
		meta["annotations"] = object{"mirador.dev/cluster": p.Cluster}
	}
	var cells []any
	if fleet {
		cells = append(cells, p.Cluster)
	}
	cells = append(cells, meta["name"])
	age := time.Since(p.created()).Truncate(time.Minute).String()
	if kind == "Pod" {
		ready := "1/1"
		if p.Status != "Running" {
			ready = "0/1"
		}
		cells = append(cells, ready, p.Status, fmt.Sprint(p.Restarts), age,
			fmt.Sprintf("10.%d.%d.%d", p.index>>16, p.index>>8&255, p.index&255), fmt.Sprintf("node-%d", p.index%40))
	} else {
		cells = append(cells, age)
	}
	return object{"cells": cells, "object": object{"kind": "PartialObjectMetadata",
		"apiVersion": "meta.k8s.io/v1", "metadata": meta}}
}

func table(kind string, fleet bool, version int64, rows []object, head bool) object {
	t := object{"kind": "Table", "apiVersion": "meta.k8s.io/v1",
		"metadata": object{"resourceVersion": fmt.Sprint(version)}, "rows": rows, "columnDefinitions": []column{}}
	if head {
		t["columnDefinitions"] = columns(kind, fleet)
	}
	return t
}
