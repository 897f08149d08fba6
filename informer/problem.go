package informer

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
)

// Problem is something that went wrong in an informer.
type Problem struct {
	// Informer is the informer's name.
	Informer string
	// Doing says what was attempted: "list", "watch", "stream", "initial state",
	// "decode", "transform", "index", "handle". Health counts a panic of OnProblem itself as "report".
	Doing string
	// Key is the object concerned, where there is one.
	Key object.Key
	Err error
	// Wait is how long the reflector waits before it tries again; 0 if it does not wait.
	Wait time.Duration
}

func (i *Informer[T]) problem(doing string, key object.Key, err error) {
	i.problemWait(doing, key, err, 0)
}

// problemWait counts a problem and reports it: at once, or at the end of the current write.
func (i *Informer[T]) problemWait(doing string, key object.Key, err error, wait time.Duration) {
	i.count(doing)
	p := Problem{Informer: i.opts.Name, Doing: doing, Key: key, Err: err, Wait: wait}
	if !i.writing.Load() {
		i.report(p)
		return
	}
	i.reports.add(p)
	if !i.writing.Load() { // the end of the write may not have seen it
		i.reportHeld()
	}
}

// beginWrite begins a write to the store. Until endWrite, problems are collected instead of reported: OnProblem may
// call the informer or a factory, or take a lock that is held by a goroutine that waits for this write.
func (i *Informer[T]) beginWrite() {
	i.write.Lock()
	i.writing.Store(true)
}

// endWrite ends a write and reports what went wrong in it.
func (i *Informer[T]) endWrite() {
	i.writing.Store(false)
	i.write.Unlock()
	i.reportHeld()
}

// reports are problems that wait for the end of a write. While there are none, a batch costs one atomic load.
type reports struct {
	n   atomic.Int32
	mu  sync.Mutex
	all []Problem
}

func (r *reports) add(p Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p)
	r.n.Store(int32(len(r.all)))
}

func (r *reports) take() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	r.n.Store(0)
	return all
}

func (i *Informer[T]) reportHeld() {
	if i.reports.n.Load() == 0 {
		return
	}
	for _, p := range i.reports.take() {
		i.report(p)
	}
}

// report logs a problem and calls OnProblem. A panic in OnProblem or in the logger is recovered and counted as
// "report", unless CrashOnPanic returns true.
func (i *Informer[T]) report(p Problem) {
	defer func() {
		if recovered := recover(); recovered != nil {
			i.count("report")
			i.logPanic(p, recovered)
			if i.opts.CrashOnPanic != nil && i.opts.CrashOnPanic() {
				panic(recovered)
			}
		}
	}()
	level := slog.LevelWarn
	if p.Doing == "handle" {
		level = slog.LevelError
	}
	i.opts.Logger.Log(i.logContext, level, "informer: "+p.Doing+" failed",
		"informer", p.Informer, "key", string(p.Key), "error", p.Err)
	if i.opts.OnProblem != nil {
		i.opts.OnProblem(p)
	}
}

// logPanic logs a panic of OnProblem, unless the logger itself panics.
func (i *Informer[T]) logPanic(p Problem, recovered any) {
	defer func() { _ = recover() }()
	i.opts.Logger.Log(i.logContext, slog.LevelError, "informer: OnProblem panicked",
		"informer", p.Informer, "doing", p.Doing, "panic", fmt.Sprint(recovered), "stack", string(debug.Stack()))
}

func (i *Informer[T]) count(doing string) {
	i.countsMu.Lock()
	if i.counts == nil {
		i.counts = map[string]uint64{}
	}
	i.counts[doing]++
	i.countsMu.Unlock()
}

func (i *Informer[T]) fromReflector(p reflector.Problem) {
	i.problemWait(p.Doing, p.Key, p.Err, p.Wait)
}
