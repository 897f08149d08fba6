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
	newinformer "github.com/mirador-k8s/mirador/examples/14-new-informer"
	newindexerinformer "github.com/mirador-k8s/mirador/examples/15-new-indexer-informer"
	newsharedinformer "github.com/mirador-k8s/mirador/examples/16-new-shared-informer"
	factorybygvr "github.com/mirador-k8s/mirador/examples/17-factory-by-gvr"
	clientset "github.com/mirador-k8s/mirador/examples/18-clientset"
	dynamicclient "github.com/mirador-k8s/mirador/examples/19-dynamic-client"
	discovery "github.com/mirador-k8s/mirador/examples/20-discovery"
	everything "github.com/mirador-k8s/mirador/examples/21-everything"
	controller "github.com/mirador-k8s/mirador/examples/22-controller"
	kindkept "github.com/mirador-k8s/mirador/examples/23-kind-kept"
	memoryreleased "github.com/mirador-k8s/mirador/examples/24-memory-released"
)

// programs are all examples, in the order in which they are best read.
var programs = []program{
	{"01-deltafifo", "a queue of plain structs: list, pop, changes grouped by object, callbacks by type", nothing,
		[]variant{alone(compat, deltafifo.Compat), alone(typed, deltafifo.Typed)}},
	{"02-known-objects", "what a queue makes of the objects that are known already, given by a lister written by hand",
		nothing, []variant{alone(compat, known.Compat), alone(typed, known.Typed)}},
	{"03-list", "the state of a cluster: list", cluster,
		[]variant{onCluster(compat, list.Compat), onCluster(typed, list.Typed)}},
	{"04-watch", "its changes: watch", cluster,
		[]variant{onCluster(compat, watch.Compat), onCluster(typed, watch.Typed)}},
	{"05-reflector-queue", "a reflector into a queue; without known objects no Deleted arrives", cluster,
		[]variant{onCluster(compat, reflectorqueue.Compat)}},
	{"06-reflector-store", "the same with a store; Deleted arrives", cluster,
		[]variant{onCluster(compat, reflectorstore.Compat), onCluster(typed, reflectorstore.Typed)}},
	{"07-watchdog", "a small informer made by hand; what fails is tried again", cluster,
		[]variant{onCluster(compat, watchdog.Compat), onCluster(typed, watchdog.Typed)}},
	{"08-one-listener", "how one handler is called", nothing, []variant{alone(typed, onelistener.Run)}},
	{"09-many-listeners", "how many handlers are called, one of them late", nothing,
		[]variant{alone(typed, manylisteners.Run)}},
	{"10-shared-informer", "many handlers on a list and a watch; how the original loses every update", cluster,
		[]variant{onCluster(compat, sharedinformer.Compat), onCluster(typed, sharedinformer.Typed)}},
	{"11-index", "finding objects by namespace and by label", nothing,
		[]variant{alone(compat, index.Compat), alone(typed, index.Typed)}},
	{"12-index-http", "an index behind an HTTP endpoint", clusterAndPort,
		[]variant{serving(compat, indexhttp.Compat), serving(typed, indexhttp.Typed)}},
	{"13-factory-http", "a factory of informers behind an HTTP endpoint", clusterAndPort,
		[]variant{serving(compat, factoryhttp.Compat), serving(typed, factoryhttp.Typed)}},
	{"14-new-informer", "NewInformer: one handler and a store", cluster,
		[]variant{onCluster(compat, newinformer.Compat), onCluster(typed, newinformer.Typed)}},
	{"15-new-indexer-informer", "NewIndexerInformer: one handler and a store with an index", cluster,
		[]variant{onCluster(compat, newindexerinformer.Compat), onCluster(typed, newindexerinformer.Typed)}},
	{"16-new-shared-informer", "NewSharedInformer: many handlers", cluster,
		[]variant{onCluster(compat, newsharedinformer.Compat), onCluster(typed, newsharedinformer.Typed)}},
	{"17-factory-by-gvr", "informers by the names of resources; one namespace, resync, waiting for the sync", cluster,
		[]variant{onCluster(compat, factorybygvr.Compat), onCluster(typed, factorybygvr.Typed)}},
	{"18-clientset", "loading a kubeconfig; the clientset", cluster, []variant{byKubeconfig(plain, clientset.Run)}},
	{"19-dynamic-client", "a Deployment from YAML; reading, changing and deleting whatever there is", cluster,
		[]variant{byKubeconfig(plain, dynamicclient.Run)}},
	{"20-discovery", "what resources there are", cluster, []variant{byKubeconfig(plain, discovery.Run)}},
	{"21-everything", "a mirror of everything that discovery lists, custom resources included", cluster,
		[]variant{onCluster(compat, everything.Compat), onCluster(typed, everything.Typed)}},
	{"22-controller", "a controller: informer, work queue, reconcile, retries", cluster,
		[]variant{onCluster(compat, controller.Compat), onCluster(typed, controller.Typed)}},
	{"23-kind-kept", "the pit of the lost kind and apiVersion, and the way out", cluster,
		[]variant{onCluster(compat, kindkept.Compat), onCluster(typed, kindkept.Typed)}},
	{"24-memory-released", "the pit of the memory that a stopped informer holds, and the way out, measured", cluster,
		[]variant{onCluster(compat, memoryreleased.Compat), onCluster(typed, memoryreleased.Typed)}},
}
