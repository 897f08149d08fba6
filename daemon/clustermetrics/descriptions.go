package clustermetrics

import "github.com/prometheus/client_golang/prometheus"

var descriptions []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("mirador_"+name, help, labels, nil)
	descriptions = append(descriptions, d)
	return d
}

func describeCluster(name, help string, labels ...string) *prometheus.Desc {
	return describe("cluster_"+name, help, append([]string{"cluster"}, labels...)...)
}

// Metrics of a cluster.
var (
	reachable = describeCluster("reachable", "0 while no resource of the cluster can be watched, else 1.")
	resources = describeCluster("resources", "Resources that are mirrored.")
	synced    = describeCluster("resources_synced",
		"Resources whose initial state is complete. Reads of the others may miss objects.")
	restored = describeCluster("resources_restored",
		"Resources that are from disk, and that the cluster has not confirmed.")
	failing      = describeCluster("resources_failing", "Resources that cannot be listed or watched at present.")
	objects      = describeCluster("objects", "Objects in the mirrors of the cluster.")
	bytes        = describeCluster("bytes", "Size of these objects in memory, without tables and indexes.")
	lastEventAge = describeCluster("last_event_age_seconds",
		"Seconds since the cluster last sent anything for the resource for which that is longest ago. A healthy watch "+
			"receives something about once a minute.")
	queueBytes = describeCluster("queue_bytes", "Size of the changes that wait to be stored.")
	handlerLag = describeCluster("handler_lag_seconds",
		"Age of the oldest event that waits for a handler or is being handled; 0 if there is none.")

	events      = describeCluster("events_total", "Changes sent to handlers: objects added, updated and deleted.")
	watches     = describeCluster("watches_total", "Watches opened. The cluster ends each after some minutes.")
	undecodable = describeCluster("undecodable_total",
		"Objects from the cluster that could not be decoded; their last readable state is kept.")
	coalesced = describeCluster("queue_coalesced_total",
		"Changes replaced by a later one of the same object while they waited to be stored.")
	resets = describeCluster("history_resets_total",
		"How often the history of a resource was reset, as by an etcd restored from a backup.")
	failures = describeCluster("errors_total",
		"Failures of requests and watches, by reason. After expired and ahead, a resource is relisted.", "reason")
	problems = describeCluster("problems_total",
		"Problems, by what was attempted; handle means that a handler panicked.", "doing")
)

// Metrics of all clusters together.
var (
	fleetBytes = describe("fleet_bytes",
		"Memory of all mirrors, with tables and with what is being read, as --max-fleet-bytes counts it.")
	fleetMaxBytes = describe("fleet_max_bytes", "What all mirrors may take; 0 if there is no limit.")
)

// Metrics of a resource in all clusters.
var (
	resourceMirrors = describe("resource_mirrors", "Clusters in which the resource is mirrored.", "resource")
	resourceObjects = describe("resource_objects", "Objects of the resource in all clusters.", "resource")
	resourceBytes   = describe("resource_bytes", "Size of these objects in memory, without tables and indexes.",
		"resource")
)
