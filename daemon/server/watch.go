package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

const (
	// bookmarkEvery is how often a quiet watch is told how far it is.
	bookmarkEvery = time.Minute
	// writeTimeout is how long a client may take to read what is written to it at once.
	writeTimeout = 30 * time.Second
	// watchAtLeast is how long a watch lasts that names no time, and up to twice as long.
	watchAtLeast = 30 * time.Minute
)

// stream is one watch that is served.
type stream struct {
	w        http.ResponseWriter
	socket   *websocket.Conn // nil where the answer is plain HTTP
	ctl      *http.ResponseController
	render   *renderer
	filter   *filter
	feed     *feed
	blank    func(version string, initialEnd bool) ([]byte, error) // a bookmark's line
	start    object.Version                                        // the feed's changes up to here were told before it
	told     object.Version                                        // how far it is
	reached  func(told object.Version) (string, bool)              // how far all is told, if it is
	columned bool                                                  // a table's columns were sent
	work     *work                                                 // the turns in which objects are read
	working  bool                                                  // it has one
}

// watch serves a watch of one resource of one cluster.
func (s *Server) watch(w http.ResponseWriter, req *request, v *view) error {
	res := v.places[0].res
	admitted, err := s.admitWatch(req)
	if err != nil {
		return err
	}
	defer admitted.close()
	flt, err := s.newFilter(req, v)
	if err != nil {
		return err
	}
	st := newStream(w, s.renderer(req, v), flt, res.GVK())
	st.work = admitted.work
	st.work.leave()
	hub, feed, err := s.hubs.join(res, req.cluster, req.namespace)
	if err != nil {
		return unavailable(err)
	}
	defer s.hubs.leave(hub, feed)
	st.feed = feed
	st.reached = func(told object.Version) (string, bool) {
		if all, ok := hub.told(feed); ok && told.Before(all) {
			told = all
		}
		return reached(res, told)
	}
	ctx, cancel := context.WithTimeout(req.context(), req.timeout(watchAtLeast+rand.N(watchAtLeast)))
	defer cancel()
	if !req.fromNow() {
		if err := waitVersion(ctx, res, object.Version(req.ResourceVersion)); err != nil {
			return err
		}
	}
	st.serve(ctx, req, func(ctx context.Context) error {
		var err error
		switch begin, end := req.initialEvents(); {
		case begin:
			err = st.state(ctx, req, res.Snapshot(), end)
		case req.fromNow():
			st.start = res.Snapshot().Version()
			st.told = st.start
		default:
			err = st.since(req, res, object.Version(req.ResourceVersion))
		}
		if err != nil {
			return err
		}
		admitted.settle()
		return st.follow(ctx, res.Done(), s.stopping, req.AllowWatchBookmarks)
	})
	return nil
}

func newStream(w http.ResponseWriter, render *renderer, flt *filter, gvk schema.GroupVersionKind) *stream {
	st := &stream{w: w, ctl: http.NewResponseController(w), render: render, filter: flt}
	st.blank = func(version string, initialEnd bool) ([]byte, error) {
		columns := !st.columned
		st.columned = true
		return bookmark(render, gvk, version, initialEnd, columns)
	}
	return st
}

// reached says up to where a watch has been told everything that the mirror knows, given a version up to which it has.
func reached(res *fleet.Resource, told object.Version) (string, bool) {
	v := res.Snapshot().Version()
	if told == "" || v == "" {
		return "", false
	}
	if !told.Before(v) {
		return string(v), true // of versions that were merged the mirror's own counts
	}
	waiting, err := res.Since(told)
	if err != nil {
		return "", false
	}
	for range waiting {
		return string(told), true // something is on its way
	}
	return string(v), true
}

// waitVersion waits until the mirror has everything up to a version.
func waitVersion(ctx context.Context, res *fleet.Resource, v object.Version) error {
	if err := checkVersion(v, res.Snapshot().Version()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := res.WaitVersion(ctx, v); err != nil {
		return tooLarge(v, res.Snapshot().Version())
	}
	return nil
}

// checkVersion refuses a version that is not a number where the mirror's own are numbers. It will never be reached,
// so the client must not be told to ask again.
func checkVersion(v, own object.Version) error {
	if _, err := strconv.ParseUint(string(own), 10, 64); err != nil {
		return nil
	}
	if _, err := strconv.ParseUint(string(v), 10, 64); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the resource version %q is not a number", clip(string(v))))
	}
	return nil
}

// tooLarge is an API server's word for a version that it has not reached.
func tooLarge(v, now object.Version) error {
	st := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %s, current: %s", v, now), 1).ErrStatus
	st.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return &apierrors.StatusError{ErrStatus: st}
}

// unavailable is an answer to try again in a moment.
func unavailable(err error) error {
	st := apierrors.NewServiceUnavailable(err.Error()).ErrStatus
	st.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return &apierrors.StatusError{ErrStatus: st}
}

// unavailableNow is an answer that will be the same in a moment. Clients such as kubectl try again by themselves
// where they are told when, and show nothing until they have given up.
func unavailableNow(err error) error { return apierrors.NewServiceUnavailable(err.Error()) }

func (st *stream) begin() {
	h := st.w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", "no-cache, private")
	st.w.WriteHeader(http.StatusOK)
	st.flush() // the next write meets the same error
}

// write sends lines that belong together; to a WebSocket, which has a frame for each event, it is one line.
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
	return st.deadline(time.Time{}) // HTTP/2 would end a stream that has nothing to say
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

// state tells everything there is.
func (st *stream) state(ctx context.Context, req *request, snap *fleet.Snapshot, ended bool) error {
	if err := st.startWork(); err != nil {
		return ignoreEnd(ctx, err)
	}
	defer st.endWork()
	entries, flt := st.filter.candidates(snap, req.namespace)
	var lines []byte
	for _, e := range entries {
		if err := st.work.pace(); err != nil {
			return ignoreEnd(ctx, err)
		}
		if ok, err := flt.takes(req.cluster, e); err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		line, err := encodeFrame(st.render, kwatch.Added, req.cluster, e, string(e.Version), !st.columned)
		if err != nil {
			return err
		}
		st.columned = true
		if err := st.gather(&lines, line); err != nil {
			return err
		}
	}
	st.start, st.told = snap.Version(), snap.Version()
	if ended {
		line, err := st.blank(string(snap.Version()), true)
		if err != nil {
			return err
		}
		if err := st.gather(&lines, line); err != nil {
			return err
		}
	}
	st.endWork()
	return st.write(lines)
}

// since tells what happened after a version, from the log.
func (st *stream) since(req *request, res *fleet.Resource, v object.Version) error {
	changes, err := res.Since(v)
	if err != nil {
		return err
	}
	st.start, st.told = v, v
	if err := st.startWork(); err != nil {
		return err
	}
	defer st.endWork()
	var lines []byte
	for l := range changes {
		if err := st.work.pace(); err != nil {
			return err
		}
		st.start, st.told = l.Version, l.Version
		if namespace, _ := l.Key.Split(); req.namespace != "" && namespace != req.namespace {
			continue
		}
		line, err := st.line(changeOf(req.cluster, &l))
		if err != nil {
			return err
		}
		if err := st.gather(&lines, line); err != nil {
			return err
		}
	}
	st.endWork()
	return st.write(lines)
}

func changeOf(cluster string, l *store.LogEntry[*fleet.Object]) *change {
	c := &change{cluster: cluster, key: l.Key, old: l.Old, now: l.New, version: string(l.Version), order: l.Version}
	if l.New != nil {
		c.version = string(l.New.Version)
	}
	return c
}

// line gives what a watch is told of a change; nothing if it does not concern it.
func (st *stream) line(c *change) ([]byte, error) {
	what, err := st.filter.sees(c)
	if err != nil || what == "" {
		return nil, err
	}
	line, err := c.frame(st.render, what, st.render.form == asTable && !st.columned)
	st.columned = true
	return line, err
}

// follow tells what happens until the watch ends. nil is an end in peace.
func (st *stream) follow(ctx context.Context, gone, stopping <-chan struct{}, marks bool) error {
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
			if err := st.tell(batch); err != nil {
				return err
			}
			clear(batch)
		case <-tick:
			if v, ok := st.reached(st.told); ok {
				st.told = object.Version(v)
				line, err := st.blank(v, false)
				if err == nil {
					err = st.write(line)
				}
				if err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		case <-gone:
			return nil
		case <-stopping:
			return nil
		}
	}
}

func (st *stream) tell(batch []*change) error {
	lines := lineBuffers.Get().(*[]byte)
	defer lineBuffers.Put(lines)
	*lines = (*lines)[:0]
	st.render.now = time.Now() // ages in a table are of the moment in which a line is sent
	costly := st.filter.costly()
	if costly {
		st.work.again()
		if err := st.startWork(); err != nil {
			return err
		}
		defer st.endWork()
	}
	for _, c := range batch {
		if costly {
			if err := st.work.pace(); err != nil {
				return err
			}
		}
		if st.start != "" && !st.start.Before(c.order) {
			continue // it was in the snapshot or the log
		}
		line, err := st.line(c)
		if err != nil {
			return err
		}
		st.told = c.order
		if err := st.gather(lines, line); err != nil {
			return err
		}
	}
	st.endWork()
	return st.write(*lines)
}

// linesTogether is up to how many bytes lines are put together to be sent at once.
const linesTogether = 64 << 10

// lineBuffers are where lines are put together. A thousand watches that had one each, as large as what ever waited for them,
// held 1.4 GB after a burst of changes.
var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

// gather adds a line to those that wait to be sent, and sends them where they are many.
func (st *stream) gather(lines *[]byte, line []byte) error {
	if st.socket != nil {
		return st.writeBetween(line)
	}
	if len(*lines) > 0 && len(*lines)+len(line) > linesTogether {
		if err := st.writeBetween(*lines); err != nil {
			return err
		}
		*lines = (*lines)[:0]
	}
	if len(line) > linesTogether {
		return st.writeBetween(line)
	}
	*lines = append(*lines, line...)
	return nil
}

// finish says why a watch ends, where a client can do something about it.
func (st *stream) finish(err error, t *target) {
	status := endStatus(err, t)
	if status == nil {
		return
	}
	b, merr := json.Marshal(status)
	if merr != nil {
		return
	}
	st.write(append(append([]byte(`{"type":"ERROR","object":`), b...), "}\n"...)) // it ends anyway
}
