// Command soak keeps informers running on a real cluster for a long time and shows
// that nothing grows and nothing is lost: `make soak MINUTES=30`.
//
// 20,000 pods change all the time. Two informers mirror them, one with live objects
// and one packed. Each has two handlers from the first to the last moment, a quick one
// and one that cannot keep up, and ten more handlers come and go, some of them slow.
// Every ten seconds live heap, goroutines, open files, events and what waits are
// written down. At the end:
//
//   - Each mirror equals a consistent list, key by key and version by version.
//   - No watch was reopened without a cause: its time was over, or it failed.
//   - What each lasting handler was told, added up, equals the mirror.
//   - Live heap, goroutines and open files were flat: see the comment of flatness.
//   - After the stop there are no more goroutines and open files than before the start.
//
// The series are written as JSON and as a plot.
package main
