// Package metrics exports informers to Prometheus.
//
//	collector, err := metrics.NewCollector(f.Health) // all informers of a factory
//	registry.MustRegister(collector)
//
//	collector, err = metrics.NewCollector(metrics.Of(pods, nodes)) // or single ones
//
// What it promises:
//
//   - Metrics cost the informers nothing between scrapes: their health is read during a scrape.
//   - A scrape does not fail because of an informer: equal names get a number, and invalid UTF-8 in names is replaced.
//   - The number of series is bounded. Each informer has a fixed set, one series for each reason of failure, and
//     those of its handlers: handlers without a name are counted together as "unnamed", and named ones beyond the
//     first fifty as "other".
//   - Counters of handlers do not decrease when one of several handlers with a label is removed. Other counters start
//     at zero when an informer is started again, as counters do.
//
// Every metric name begins with mirador_informer_. The label informer is the informer's name; cluster and resource are
// those of its source.
package metrics
