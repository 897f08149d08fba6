package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/object"
)

// stream is an open watch.
type stream struct {
	w           http.ResponseWriter
	socket      *websocket.Conn // nil for plain HTTP
	ctl         *http.ResponseController
	render      *renderer
	filter      *filter
	hub         watchHub
	feed        *feed
	bookmark    func(version string, initialEnd bool) ([]byte, error) // encodes a bookmark
	start       object.Version                                        // changes of the feed up to here were already sent
	sent        object.Version                                        // version of the last change
	sentColumns bool                                                  // a table's columns were sent
	rights      *watchRights                                          // of the user
	work        *work                                                 // reading objects takes turns
	working     bool                                                  // the stream has a turn
}

func newStream(w http.ResponseWriter, render *renderer, flt *filter, gvk schema.GroupVersionKind) *stream {
	st := &stream{w: w, ctl: http.NewResponseController(w), render: render, filter: flt}
	st.bookmark = func(version string, initialEnd bool) ([]byte, error) {
		columns := !st.sentColumns
		st.sentColumns = true
		return bookmark(render, gvk, version, initialEnd, columns)
	}
	return st
}

// endsWith ends the watch with 410 when the rights of its user change, or its credentials are no longer valid.
func (st *stream) endsWith(rights *watchRights) {
	st.rights = rights
	rights.onEnd(func() { st.feed.cut(rights.reason()) })
}

// revoked returns an error if the rights of the user have changed, or its credentials are no longer valid.
func (st *stream) revoked() error {
	if st.rights != nil && st.rights.ended.Load() {
		return st.rights.reason()
	}
	return nil
}

func (st *stream) writeHeader() {
	h := st.w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", "no-cache, private")
	st.w.WriteHeader(http.StatusOK)
	st.flush() // the next write returns the same error
}

// write sends lines and flushes them. A WebSocket has one frame per event, so there b is one line.
func (st *stream) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := st.deadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if st.socket != nil {
		if _, err := st.socket.Write(b); err != nil {
			return err
		}
		return st.deadline(time.Time{})
	}
	if _, err := st.w.Write(b); err != nil {
		return err
	}
	if err := st.flush(); err != nil {
		return err
	}
	return st.deadline(time.Time{}) // HTTP/2 ends an idle stream at its deadline
}

func (st *stream) deadline(at time.Time) error {
	if st.socket != nil {
		return st.socket.SetWriteDeadline(at)
	}
	if err := st.ctl.SetWriteDeadline(at); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func (st *stream) flush() error {
	if err := st.ctl.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// sendInitial sends the current objects, followed by a bookmark if ended is true.
func (st *stream) sendInitial(ctx context.Context, req *request, v *view, ended bool) error {
	if err := st.takeTurn(); err != nil {
		return ignoreEnd(ctx, err)
	}
	defer st.endTurn()
	var lines []byte
	var version string
	for _, p := range v.places {
		snap := p.res.Snapshot()
		version = v.version(snap)
		entries, flt := st.filter.candidates(snap, req.namespace)
		for _, e := range entries {
			if err := st.work.pace(); err != nil {
				return ignoreEnd(ctx, err)
			}
			if err := st.revoked(); err != nil {
				return err
			}
			if ok, err := flt.matches(p.cluster, e); err != nil || !ok {
				if err != nil {
					return err
				}
				continue
			}
			line, err := encodeFrame(st.render, kwatch.Added, p.cluster, e, v.versionOf(p.cluster, e), !st.sentColumns)
			if err != nil {
				return err
			}
			st.sentColumns = true
			if err := st.buffer(&lines, line); err != nil {
				return err
			}
		}
	}
	st.beginAt(version)
	if ended {
		line, err := st.bookmark(version, true)
		if err != nil {
			return err
		}
		if err := st.buffer(&lines, line); err != nil {
			return err
		}
	}
	st.endTurn()
	return st.write(lines)
}

// beginAt records that the client has everything up to a version.
func (st *stream) beginAt(version string) {
	st.start, st.sent = object.Version(version), object.Version(version)
}

// sendMissed sends the changes between the version that the watch continues from and the moment it joined its hub.
func (st *stream) sendMissed(changes iter.Seq[*change]) error {
	if err := st.takeTurn(); err != nil {
		return err
	}
	defer st.endTurn()
	var lines []byte
	for c := range changes {
		if err := cmp.Or(st.work.pace(), st.revoked()); err != nil {
			return err
		}
		st.beginAt(string(c.order))
		if !st.feed.of.concerns(c.cluster, c.key) {
			continue
		}
		line, err := st.line(c)
		if err != nil {
			return err
		}
		if err := st.buffer(&lines, line); err != nil {
			return err
		}
	}
	st.endTurn()
	return st.write(lines)
}

// line encodes a change for this watch. It returns nothing if the change does not concern the watch.
func (st *stream) line(c *change) ([]byte, error) {
	what, err := st.filter.eventType(c)
	if err != nil || what == "" {
		return nil, err
	}
	line, err := c.frame(st.render, what, st.render.form == asTable && !st.sentColumns)
	st.sentColumns = true
	return line, err
}

// follow sends changes until the watch ends. nil means that the client needs no reason for the end.
func (st *stream) follow(ctx context.Context, stopping <-chan struct{}, marks bool) error {
	var tick <-chan time.Time
	if marks {
		ticker := time.NewTicker(bookmarkEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	var batch []*change
	for {
		select {
		case <-st.feed.wake:
			var err error
			if batch, err = st.feed.take(batch[:0]); err != nil {
				return err
			}
			if err := st.send(batch); err != nil {
				return err
			}
			clear(batch)
		case <-tick:
			if v, ok := st.hub.reached(st.feed, st.sent); ok {
				st.sent = object.Version(v)
				line, err := st.bookmark(v, false)
				if err == nil {
					err = st.write(line)
				}
				if err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		case <-st.hub.done():
			return nil
		case <-stopping:
			return nil
		}
	}
}

func (st *stream) send(batch []*change) error {
	lines := lineBuffers.Get().(*[]byte)
	defer lineBuffers.Put(lines)
	*lines = (*lines)[:0]
	st.render.now = time.Now() // ages in a table are as of sending
	readsObjects := st.filter.readsObjects()
	if readsObjects {
		st.work.asNewRequest()
		if err := st.takeTurn(); err != nil {
			return err
		}
		defer st.endTurn()
	}
	for _, c := range batch {
		if err := st.revoked(); err != nil {
			return err
		}
		if readsObjects {
			if err := st.work.pace(); err != nil {
				return err
			}
		}
		if st.start != "" && !st.start.Before(c.order) {
			continue // it was in the snapshot or the log that was already sent
		}
		line, err := st.line(c)
		if err != nil {
			return err
		}
		st.sent = c.order
		if err := st.buffer(lines, line); err != nil {
			return err
		}
	}
	st.endTurn()
	return st.write(*lines)
}

// linesTogether is how many bytes of lines are sent in one write.
const linesTogether = 64 << 10

// lineBuffers shares the buffers for lines among all watches: one for each watch would stay as large as the largest
// burst of changes.
var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

// buffer adds a line to those that wait to be sent, and sends them first if they are many.
func (st *stream) buffer(lines *[]byte, line []byte) error {
	if st.socket != nil {
		return st.writeWithoutTurn(line)
	}
	if len(*lines) > 0 && len(*lines)+len(line) > linesTogether {
		if err := st.writeWithoutTurn(*lines); err != nil {
			return err
		}
		*lines = (*lines)[:0]
	}
	if len(line) > linesTogether {
		return st.writeWithoutTurn(line)
	}
	*lines = append(*lines, line...)
	return nil
}

// finish sends the reason for the end of a watch, if the client has to act on it.
func (st *stream) finish(err error, t *target) {
	status := endStatus(err, t)
	if status == nil {
		return
	}
	b, merr := json.Marshal(status)
	if merr != nil {
		return
	}
	st.write(append(append([]byte(`{"type":"ERROR","object":`), b...), "}\n"...)) // the watch ends also if this fails
}

// takeTurn waits for a turn to read objects.
func (st *stream) takeTurn() error {
	st.work.answering()
	err := st.work.resume()
	st.working = err == nil
	return err
}

// endTurn ends the turn, if there is one.
func (st *stream) endTurn() {
	if st.working {
		st.work.leave()
		st.working = false
	}
}

// writeWithoutTurn writes lines. If the stream has a turn, it ends the turn first and takes another one afterwards.
func (st *stream) writeWithoutTurn(b []byte) error {
	if !st.working || len(b) == 0 {
		return st.write(b)
	}
	st.endTurn()
	if err := st.write(b); err != nil {
		return err
	}
	return st.takeTurn()
}

// ignoreEnd returns nil if the watch has ended, and err otherwise.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
