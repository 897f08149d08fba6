package main

import (
	deltafifo "github.com/mirador-k8s/mirador/examples/01-deltafifo"
	known "github.com/mirador-k8s/mirador/examples/02-known-objects"
	list "github.com/mirador-k8s/mirador/examples/03-list"
	watch "github.com/mirador-k8s/mirador/examples/04-watch"
	reflectorqueue "github.com/mirador-k8s/mirador/examples/05-reflector-queue"
	reflectorstore "github.com/mirador-k8s/mirador/examples/06-reflector-store"
	watchdog "github.com/mirador-k8s/mirador/examples/07-watchdog"
	onelistener "github.com/mirador-k8s/mirador/examples/08-one-listener"
	manylisteners "github.com/mirador-k8s/mirador/examples/09-many-listeners"
	sharedinformer "github.com/mirador-k8s/mirador/examples/10-shared-informer"
	index "github.com/mirador-k8s/mirador/examples/11-index"
	indexhttp "github.com/mirador-k8s/mirador/examples/12-index-http"
	factoryhttp "github.com/mirador-k8s/mirador/examples/13-factory-http"
	constructors "github.com/mirador-k8s/mirador/examples/14-constructors"
	factorybygvr "github.com/mirador-k8s/mirador/examples/15-factory-by-gvr"
	clientset "github.com/mirador-k8s/mirador/examples/16-clientset"
	dynamicclient "github.com/mirador-k8s/mirador/examples/17-dynamic-client"
	discovery "github.com/mirador-k8s/mirador/examples/18-discovery"
	everything "github.com/mirador-k8s/mirador/examples/19-everything"
	controller "github.com/mirador-k8s/mirador/examples/20-controller"
	kindkept "github.com/mirador-k8s/mirador/examples/21-kind-kept"
	memoryreleased "github.com/mirador-k8s/mirador/examples/22-memory-released"
)

// programs has all examples, in reading order.
var programs = []program{
	{"01-deltafifo", "a queue of plain structs: list, pop, changes grouped by object, callbacks by type", nothing,
		[]variant{withoutCluster(compat, deltafifo.Compat), withoutCluster(typed, deltafifo.Typed)}},
	{"02-known-objects", "how a queue uses the objects that are already known, with a lister written by hand",
		nothing, []variant{withoutCluster(compat, known.Compat), withoutCluster(typed, known.Typed)}},
	{"03-list", "the state of a cluster: list", cluster,
		[]variant{onCluster(compat, list.Compat), onCluster(typed, list.Typed)}},
	{"04-watch", "its changes: watch", cluster,
		[]variant{onCluster(compat, watch.Compat), onCluster(typed, watch.Typed)}},
	{"05-reflector-queue", "a reflector into a queue; without known objects no Deleted arrives", cluster,
		[]variant{onCluster(compat, reflectorqueue.Compat)}},
	{"06-reflector-store", "the same with a store; Deleted arrives", cluster,
		[]variant{onCluster(compat, reflectorstore.Compat), onCluster(typed, reflectorstore.Typed)}},
	{"07-watchdog", "a small informer built by hand, with retries", cluster,
		[]variant{onCluster(compat, watchdog.Compat), onCluster(typed, watchdog.Typed)}},
	{"08-one-listener", "how one handler is called", nothing, []variant{withoutCluster(typed, onelistener.Run)}},
	{"09-many-listeners", "how many handlers are called, one of them late", nothing,
		[]variant{withoutCluster(typed, manylisteners.Run)}},
	{"10-shared-informer", "a shared informer built by hand, and how the original loses every update", cluster,
		[]variant{onCluster(compat, sharedinformer.Compat), onCluster(typed, sharedinformer.Typed)}},
	{"11-index", "finding objects by namespace and by label", nothing,
		[]variant{withoutCluster(compat, index.Compat), withoutCluster(typed, index.Typed)}},
	{"12-index-http", "an index behind an HTTP endpoint", clusterAndPort,
		[]variant{serving(compat, indexhttp.Compat), serving(typed, indexhttp.Typed)}},
	{"13-factory-http", "a factory of informers behind an HTTP endpoint", clusterAndPort,
		[]variant{serving(compat, factoryhttp.Compat), serving(typed, factoryhttp.Typed)}},
	{"14-constructors", "the constructors without a factory: one handler or many, with and without an index", cluster,
		[]variant{onCluster(compat, constructors.Compat), onCluster(typed, constructors.Typed)}},
	{"15-factory-by-gvr", "informers by the names of resources; one namespace, resync, waiting for the sync", cluster,
		[]variant{onCluster(compat, factorybygvr.Compat), onCluster(typed, factorybygvr.Typed)}},
	{"16-clientset", "loading a kubeconfig; the clientset", cluster, []variant{byKubeconfig(plain, clientset.Run)}},
	{"17-dynamic-client", "a Deployment from YAML; reading, changing and deleting any resource", cluster,
		[]variant{byKubeconfig(plain, dynamicclient.Run)}},
	{"18-discovery", "which resources exist", cluster, []variant{byKubeconfig(plain, discovery.Run)}},
	{"19-everything", "a mirror of everything that discovery lists, custom resources included", cluster,
		[]variant{onCluster(compat, everything.Compat), onCluster(typed, everything.Typed)}},
	{"20-controller", "a controller: informer, work queue, reconcile, retries", cluster,
		[]variant{onCluster(compat, controller.Compat), onCluster(typed, controller.Typed)}},
	{"21-kind-kept", "a pitfall: kind and apiVersion get lost, and how to keep them", cluster,
		[]variant{onCluster(compat, kindkept.Compat), onCluster(typed, kindkept.Typed)}},
	{"22-memory-released", "a pitfall: a stopped informer keeps its memory; measured, and released", cluster,
		[]variant{onCluster(compat, memoryreleased.Compat), onCluster(typed, memoryreleased.Typed)}},
}
