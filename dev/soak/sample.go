package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

// sample is one measurement of everything.
type sample struct {
	Seconds    float64 `json:"seconds"`
	Heap       uint64  `json:"liveHeapBytes"`
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"openFiles"`
	Objects    int     `json:"objects"`   // of both mirrors
	Encoded    int     `json:"encoded"`   // bytes of those objects on the wire
	Events     uint64  `json:"events"`    // delivered by both mirrors so far
	Backlog    int     `json:"backlog"`   // waiting for all handlers
	Coalesced  uint64  `json:"coalesced"` // for all handlers, those that left included
	Queue      int     `json:"queue"`     // waiting between the watches and the stores
	Joins      int64   `json:"joins"`
}

// liveHeap runs a collection and returns the live heap. One collection is enough: the handlers wait meanwhile, and
// what finalizers and pools still hold is the same every time.
func liveHeap() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// openFiles counts the file descriptors of this process, without the one that the count itself needs.
func openFiles() (int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, fmt.Errorf("count open files: %w; this needs Linux", err)
	}
	return len(entries) - 1, nil
}

// fileNames returns the names of the open files.
func fileNames() (names []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // fails for the descriptor of the count itself
			names = append(names, name)
		}
	}
	return names
}

// takeSample takes a sample.
func takeSample(since time.Time, mirrors []*mirror, g *guests) (sample, error) {
	files, err := openFiles()
	if err != nil {
		return sample{}, err
	}
	s := sample{Seconds: time.Since(since).Seconds(), Goroutines: runtime.NumGoroutine(), Files: files,
		Coalesced: g.coalesced.Load(), Joins: g.joins.Load()}
	for _, m := range mirrors {
		h := m.inf.Health()
		s.Objects += h.Objects
		s.Events += h.Events
		s.Queue += h.QueueDeltas
		for _, handler := range h.Handlers {
			s.Backlog += handler.Backlog
			s.Coalesced += handler.Coalesced
		}
		for e := range m.inf.Snapshot().Entries() {
			s.Encoded += e.Size
		}
	}
	hush.Lock()
	s.Heap = liveHeap()
	hush.Unlock()
	return s, nil
}

// print writes a line of progress.
func (s sample) print(w io.Writer, total time.Duration, last sample) {
	rate := 0.0
	if d := s.Seconds - last.Seconds; d > 0 {
		rate = float64(s.Events-last.Events) / d
	}
	at := time.Duration(s.Seconds * float64(time.Second)).Round(time.Second)
	fmt.Fprintf(w,
		"%7s of %s  live heap %6.1f MiB  goroutines %3d  files %3d  objects %d  events %d (%.0f/s)  waiting %d  "+
			"coalesced %d  joins %d\n",
		at, total, float64(s.Heap)/(1<<20), s.Goroutines, s.Files, s.Objects, s.Events, rate, s.Backlog, s.Coalesced, s.Joins)
}
