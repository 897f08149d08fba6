package informer

import (
	"log/slog"
	"time"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/reflector"
)

// Problem is something that went wrong in a pipeline.
type Problem struct {
	// Informer is the informer's name.
	Informer string
	// Doing says what was attempted: "list", "watch", "stream", "initial state",
	// "decode", "transform", "index", "handle".
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

func (i *Informer[T]) problemWait(doing string, key object.Key, err error, wait time.Duration) {
	i.count(doing)
	level := slog.LevelWarn
	if doing == "handle" {
		level = slog.LevelError
	}
	i.cfg.logger.Log(i.logContext, level, "informer: "+doing+" failed",
		"informer", i.cfg.name, "key", string(key), "error", err)
	if i.cfg.onProblem != nil {
		i.cfg.onProblem(Problem{Informer: i.cfg.name, Doing: doing, Key: key, Err: err, Wait: wait})
	}
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
