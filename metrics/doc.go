// Package metrics shows informers to Prometheus.
//
//	collector, err := metrics.NewCollector(f.Health) // all informers of a factory
//	registry.MustRegister(collector)
//
//	collector, err = metrics.NewCollector(metrics.Of(pods, nodes)) // or single ones
//
// What it promises:
//
//   - The informers pay nothing: their health is read when somebody scrapes, and
//     never in between.
//   - A scrape does not fail because of an informer: two of one name are told apart,
//     names that are no valid text are made so.
//   - The number of series is bounded. Each informer has a fixed set, one series for
//     each reason of failure it has met, and those of its handlers: handlers that
//     were given no name count together as "unnamed", and of the named ones all
//     beyond the first fifty as "other".
//   - Counters of handlers do not go back when one of several behind a name leaves.
//     The others begin at zero when an informer is started anew, as counters do.
//
// Every name begins with mirador_informer_. The label informer is the informer's
// name, cluster and resource are its source's.
package metrics
