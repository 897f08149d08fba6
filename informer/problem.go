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

// Problem is something that went wrong in a pipeline.
type Problem struct {
	// Informer is the informer's name.
	Informer string
	// Doing says what was attempted: "list", "watch", "stream", "initial state",
	// "decode", "transform", "index", "handle". Health counts a panic of OnProblem itself as "report".
	Doing string
	// Key is the object concerned, where there is one.
	Key object.Key
	Err error
	// Wait is how long the reflector holds still because of it; 0 where it does not.
	Wait time.Duration
}

func (i *Informer[T]) problem(doing string, key object.Key, err error) {
	i.problemWait(doing, key, err, 0)
}

// problemWait counts a problem and reports it: at once, or at the end of the write that is under way.
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

// beginWrite begins to write to the store. Until endWrite, problems are not reported but held back: whoever
// hears of one may ask the informer, or a factory, for anything, and may hold a lock that another holds who
// waits for this very write.
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

// reports are problems that wait for the end of a write. Without any it costs one atomic load a batch.
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

// report logs a problem and tells OnProblem. A panic there, or in the logger, is counted as "report" and ends nothing, unless
// CrashOnPanic says so: it may be the goroutine that reads the source, or a handler's.
func (i *Informer[T]) report(p Problem) {
	defer func() {
		if recovered := recover(); recovered != nil {
			i.count("report")
			i.complain(p, recovered)
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

// complain logs a panic of OnProblem, unless it is the logger that panics.
func (i *Informer[T]) complain(p Problem, recovered any) {
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
