package structures

import (
	"fmt"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// ours is this project's store, live.
type ours struct {
	w *store.Writer[*Object]
	r *store.Reader[*Object]
}

func newOurs() Candidate { return makeOurs() }

func makeOurs() *ours {
	w, err := store.New(store.Options[*Object]{Indexes: map[string]store.IndexFunc[*Object]{
		byNamespace: func(o *Object) ([]string, error) { return []string{o.Namespace}, nil },
		byApp:       func(o *Object) ([]string, error) { return []string{o.App}, nil },
	}})
	if err != nil {
		panic(fmt.Sprintf("make a store with two indexes: %v", err))
	}
	return &ours{w, w.Reader()}
}

func (s *ours) Update(batch []*Object) {
	s.w.Begin()
	for _, o := range batch {
		s.w.Put(object.Item[*Object]{Key: object.Key(o.Key), Version: object.Version(o.Version), Value: o})
	}
	s.w.Commit()
}

func (s *ours) Get(key string) *Object {
	o, _ := s.r.Get(object.Key(key))
	return o
}

func (s *ours) By(index, value string, yield func(*Object)) {
	for o := range s.r.Snapshot().ByIndex(index, value) {
		yield(o)
	}
}

func (s *ours) All(yield func(*Object)) {
	for o := range s.r.Snapshot().Objects() {
		yield(o)
	}
}

// oursPerBatch is the same hash and vectors, but with a snapshot after each batch.
type oursPerBatch struct{ *ours }

func newOursPerBatch() Candidate { return oursPerBatch{makeOurs()} }

func (s oursPerBatch) Update(batch []*Object) {
	s.ours.Update(batch)
	s.r.Snapshot()
}
