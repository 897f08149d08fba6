package metrics

import "github.com/prometheus/client_golang/prometheus"

// states are the states of a reflector; a test compares them with those of package reflector.
var states = []string{"starting", "listing", "streaming", "retrying", "not served", "polling", "stopped"}

var descriptions []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("mirador_informer_"+name, help,
		append([]string{"informer", "cluster", "resource"}, labels...), nil)
	descriptions = append(descriptions, d)
	return d
}

// Metrics of an informer.
var (
	objects = describe("objects", "Objects in the store.")
	synced  = describe("synced", "1 once the initial state is complete, else 0. While it is 0, reads may miss objects.")
	epoch   = describe("epoch", "How often the server's history was reset, as by an etcd restored from a backup.")
	inState = describe("state", "1 for the state that the connection to the server is in, 0 for the others.", "state")

	restored = describe("restored", "1 while the objects are from disk and the server has not confirmed them, else 0.")

	lastEventAge = describe("last_event_age_seconds",
		"Seconds since the server last sent anything for this resource. A healthy watch receives something about once a "+
			"minute.")
	failuresInARow = describe("consecutive_failures", "Failed attempts to reach the server since the last success.")

	events      = describe("events_total", "Changes sent to handlers: objects added, updated and deleted.")
	stale       = describe("stale_changes_total", "Changes dropped because a newer version was already stored.")
	undecodable = describe("undecodable_total",
		"Objects from the server that could not be decoded; the store keeps their last readable state.")

	queueDeltas    = describe("queue_deltas", "Changes read from the server that wait to be stored.")
	queueBytes     = describe("queue_bytes", "Size of the changes that wait to be stored.")
	queueCoalesced = describe("queue_coalesced_total",
		"Changes replaced by a later one of the same object while they waited to be stored.")

	lists = describe("lists_total",
		"Lists of the whole state. More than one per start means relists: the informer fell behind the history that the "+
			"server keeps.")
	watches  = describe("watches_total", "Watches opened. The server ends each after some minutes, so this grows slowly.")
	retries  = describe("retries_total", "Waits before another attempt, each after a failure.")
	failures = describe("errors_total", "Failures of requests and streams, by reason.", "reason")
	problems = describe("problems_total",
		"Problems, by what was attempted; handle means that a handler panicked.", "doing")
)

// Metrics of its handlers.
var (
	handlers       = describe("handlers", "Handlers that are subscribed.")
	handlerBacklog = describe("handler_backlog", "Events that wait for the handler.", "handler")
	handlerOldest  = describe("handler_lag_seconds",
		"Age of the oldest event that waits for the handler or is being handled; 0 if there is none.", "handler")
	handlerRunning = describe("handler_running_seconds",
		"Duration of the handler call in progress; 0 if there is none.", "handler")
	handlerSynced = describe("handler_synced", "1 once the handler has received the initial state, else 0.",
		"handler")
	handlerDelivered = describe("handler_delivered_total", "Completed calls of the handler.", "handler")
	handlerCoalesced = describe("handler_coalesced_total",
		"Events merged into later ones of the same object because the handler was too slow.", "handler")
	handlerPanics = describe("handler_panics_total", "Calls of the handler that panicked.", "handler")
)
