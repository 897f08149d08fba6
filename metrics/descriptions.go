package metrics

import "github.com/prometheus/client_golang/prometheus"

// states are what an informer's connection can be doing; a test compares them with
// the reflector's own.
var states = []string{"starting", "listing", "streaming", "retrying", "not served", "polling", "stopped"}

var descriptions []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("mirador_informer_"+name, help,
		append([]string{"informer", "cluster", "resource"}, labels...), nil)
	descriptions = append(descriptions, d)
	return d
}

// What an informer shows.
var (
	objects = describe("objects", "Objects that are mirrored now.")
	synced  = describe("synced", "1 once the initial state is complete, else 0. While it is 0, reads may miss objects.")
	epoch   = describe("epoch", "How often the server's history was set back, as by an etcd restored from a backup.")
	inState = describe("state", "1 for the state that the connection to the server is in, 0 for the others.", "state")

	lastWordAge = describe("last_word_age_seconds",
		"How long ago the server last said anything about this resource. A watch that lives says something about once a "+
			"minute.")
	failuresInARow = describe("consecutive_failures", "Failed attempts to reach the server since the last that worked.")

	events      = describe("events_total", "Changes told to handlers: objects added, updated and deleted.")
	stale       = describe("stale_changes_total", "Changes dropped because something newer was known already.")
	undecodable = describe("undecodable_total",
		"Objects from the server that could not be decoded and were left as they were.")

	queueDeltas    = describe("queue_deltas", "Changes read from the server that wait to be stored.")
	queueBytes     = describe("queue_bytes", "Size of the changes that wait to be stored.")
	queueCoalesced = describe("queue_coalesced_total",
		"Changes replaced by a later one of the same object while they waited to be stored.")

	lists = describe("lists_total",
		"Times the whole state was read from the server. More than one per start is a relist: the informer fell behind "+
			"what the server remembers.")
	watches  = describe("watches_total", "Watches opened. The server ends each after some minutes, so this grows slowly.")
	retries  = describe("retries_total", "Waits before another attempt, each after a failure.")
	failures = describe("errors_total", "Failures of requests and streams, by reason.", "reason")
	problems = describe("problems_total",
		"Everything that went wrong, by what was attempted; handle is a handler that panicked.", "doing")
)

// What its handlers show.
var (
	handlers       = describe("handlers", "Handlers that are subscribed.")
	handlerBacklog = describe("handler_backlog", "Events that wait for the handler.", "handler")
	handlerOldest  = describe("handler_lag_seconds",
		"Age of the oldest event that waits for the handler or is being handled; 0 if there is none.", "handler")
	handlerRunning = describe("handler_running_seconds",
		"How long the call of the handler that is under way has been running; 0 if there is none.", "handler")
	handlerSynced = describe("handler_synced", "1 once the handler has been given the initial state, else 0.",
		"handler")
	handlerDelivered = describe("handler_delivered_total", "Calls of the handler that have ended.", "handler")
	handlerCoalesced = describe("handler_coalesced_total",
		"Events merged into later ones of the same object because the handler was too slow.", "handler")
	handlerPanics = describe("handler_panics_total", "Calls of the handler that panicked.", "handler")
)
