// Command soak runs informers on a real cluster for a long time and checks that nothing grows and nothing is lost:
// `make soak MINUTES=30`.
//
// 20,000 pods change all the time. Two informers mirror them, one with live objects and one packed. Each has two
// permanent handlers, a quick one and one that cannot keep up, and ten more handlers join and leave, some of them
// slow. Every ten seconds the live heap, goroutines, open files, events and backlogs are recorded. At the end:
//
//   - Each mirror equals a consistent list, key by key and version by version.
//   - No watch was reopened without a cause: it timed out, or it failed.
//   - The sum of the events of each permanent handler equals the mirror.
//   - Live heap, goroutines and open files were flat: see the comment of flatness.
//   - After the stop there are no more goroutines and open files than before the start.
//
// The series are written as JSON and as a plot.
package main
