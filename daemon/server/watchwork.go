package server

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// selectorBytes is about what a byte of a selector or an expression takes in memory once it is compiled.
const selectorBytes = 100

// watchAdmission is what a watch holds of the limits of its client.
type watchAdmission struct {
	work   *work
	memory *grant
}

// admitWatch waits for the first turn of a watch and reserves the memory of its selectors. The work has a turn.
func (s *Server) admitWatch(req *request) (*watchAdmission, error) {
	client := s.clientOf(req.http)
	memory := s.memory.open(client)
	if err := memory.set(selectorBytes * int64(len(req.labels)+len(req.fields)+len(req.where))); err != nil {
		return nil, err
	}
	work, err := s.work.begin(req.context(), client)
	if err != nil {
		memory.close()
		return nil, err
	}
	return &watchAdmission{work, memory}, nil
}

// settle ends what only the beginning of a watch needs. The watch no longer counts as a request in the work gate, and
// may still have turns there.
func (a *watchAdmission) settle() {
	a.work.end()
	a.work.answering()
}

// close returns everything.
func (a *watchAdmission) close() {
	a.work.end()
	a.memory.close()
}

// takeWatch counts a watch that is opened. The caller closes the grant when it ends.
func (s *Server) takeWatch(r *http.Request) (*grant, error) {
	g := s.watches.open(s.clientOf(r))
	if g.set(1) != nil {
		return nil, apierrors.NewTooManyRequests("too many watches are open", 5)
	}
	return g, nil
}

// costly reports whether objects have to be read to tell what a change is to this watch, and no other watch can share
// that.
func (f *filter) costly() bool { return !f.sel.Empty() && !f.sel.OnlyLabels() }

// startWork waits for a turn in which objects are read.
func (st *stream) startWork() error {
	st.work.answering()
	err := st.work.resume()
	st.working = err == nil
	return err
}

// endWork ends it.
func (st *stream) endWork() {
	if st.working {
		st.work.leave()
		st.working = false
	}
}

// writeBetween writes lines, without a turn if the stream has one.
func (st *stream) writeBetween(b []byte) error {
	if !st.working || len(b) == 0 {
		return st.write(b)
	}
	st.endWork()
	if err := st.write(b); err != nil {
		return err
	}
	return st.startWork()
}

// ignoreEnd returns nil for an error that is the end of the watch itself.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
