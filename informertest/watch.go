package informertest

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwatch "k8s.io/apimachinery/pkg/watch"
)

// defaultWatchTimeout ends a watch without timeoutSeconds.
const defaultWatchTimeout = 30 * time.Minute

// watch is one open watch.
type watch struct {
	*call
	selection selection
	bookmarks bool
	// cursor is the version up to which everything has been sent.
	cursor uint64
	// initial is the state that is sent first; nil once it was sent or if none was requested.
	initial []*entry
	// initialEnd says that a bookmark must follow the initial state.
	initialEnd bool
	// seen is how many of the resource's forced bookmarks were sent.
	seen uint64
	// frames counts the frames that were sent.
	frames int
	// cut is closed when the connection breaks.
	cut <-chan struct{}
	// onFrame, if not nil, is called before each frame with an object is written.
	onFrame func(t kwatch.EventType, e *entry)
}

// open parses the request and starts the watch. failure is an error that is sent inside the stream.
func (c *call) open() (w *watch, timeout time.Duration, failure, err error) {
	o, err := c.listOptions()
	if err != nil {
		return nil, 0, nil, err
	}
	sel, err := c.selection()
	if err != nil {
		return nil, 0, nil, err
	}
	w = &watch{call: c, selection: sel, bookmarks: o.AllowWatchBookmarks && !c.fault.NoBookmarks}
	c.s.mu.Lock()
	failure = w.start(o)
	if failure == nil {
		c.s.watches[w] = struct{}{}
	}
	w.cut = c.s.cut
	c.s.mu.Unlock()
	timeout = defaultWatchTimeout
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return w, timeout, failure, nil
}

// close removes the watch from the server's open watches.
func (w *watch) close() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watches, w)
}

// sendHeader starts a successful response.
func (w *watch) sendHeader() {
	contentType := w.form.mediaType()
	if w.form.protobuf {
		contentType += ";stream=watch"
	}
	w.w.Header().Set("Content-Type", contentType)
	w.w.WriteHeader(http.StatusOK)
	w.w.flush()
}

func (c *call) watch() error {
	w, timeout, failure, err := c.open()
	if err != nil {
		return err
	}
	defer w.close()
	w.sendHeader()
	if st, ok := c.fault.status(c.req); ok {
		w.sendStatus(st)
		return nil
	}
	// A watch that cannot be served gets an ERROR event, as from the API server's watch cache.
	if failure != nil {
		w.sendStatus(statusOf(failure))
		return nil
	}
	if c.fault.CloseAtOnce {
		return nil
	}
	if err := w.run(timeout, w.cut); err != nil {
		w.sendStatus(statusOf(err))
	}
	return nil
}

func (w *watch) sendStatus(st metav1.Status) { w.send("ERROR", w.form.statusDocument(st)) }

// start sets the version at which the watch starts and the state to send first. The lock is held.
func (w *watch) start(o *internalversion.ListOptions) error {
	h := &w.s.history
	asked, err := versionOf(o.ResourceVersion)
	if err != nil {
		return err
	}
	w.seen = w.res.bookmarks
	stream := o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.SendInitialEvents != nil && asked > h.version {
		return tooLarge(asked, h.version)
	}
	if stream || o.SendInitialEvents == nil && asked == 0 {
		if w.cursor, err = w.stale(h.version); err != nil {
			return err
		}
		w.initial = h.list(w.res, w.cursor)
		w.initialEnd = stream
		return nil
	}
	if asked == 0 {
		asked = h.version
	}
	if asked < h.compacted {
		return tooOld(asked, h.compacted)
	}
	// A version that the server has not reached is not an error: the watch sends nothing until the server has passed it.
	w.cursor = asked
	return nil
}

// run sends the initial state and then every change, until the watch times out, the client closes it or the connection
// is cut.
func (w *watch) run(timeout time.Duration, cut <-chan struct{}) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	marks := newBookmarkClock(w.s.bookmarkPeriod, timeout)
	defer marks.timer.Stop()
	due := false
	for {
		changes, marked, stalled, wake := w.poll()
		over := deadline.C
		if stalled {
			over = nil
		} else if err := w.tell(changes, marked || due); err != nil {
			return err
		} else {
			due = false
		}
		select {
		case <-w.r.Context().Done():
			return nil
		case <-cut:
			w.w.abort()
		case <-w.res.gone:
			changes, _, _, _ := w.poll()
			return w.tell(changes, false)
		case <-over:
			return nil
		case <-marks.timer.C:
			due = true
			marks.next()
		case <-wake:
		}
	}
}

// poll returns what happened since the last call. While the server is stalled there is nothing.
func (w *watch) poll() (changes []change, marked, stalled bool, wake <-chan struct{}) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.stalled {
		return nil, false, true, w.s.wake
	}
	changes = w.s.history.since(w.res, w.cursor)
	w.cursor = max(w.cursor, w.s.history.version)
	marked = w.seen != w.res.bookmarks
	w.seen = w.res.bookmarks
	return changes, marked, false, w.s.wake
}

func (w *watch) tell(changes []change, mark bool) error {
	if w.initial != nil {
		for _, e := range w.initial {
			if w.selection.matches(e) {
				w.sendEntry(kwatch.Added, e)
			}
		}
		w.initial = nil
	}
	if w.initialEnd {
		w.initialEnd = false
		// Changes made since then follow the bookmark, which ends the initial state only.
		version := w.cursor
		if len(changes) > 0 {
			version = changes[0].version - 1
		}
		if err := w.mark(version, true); err != nil {
			return err
		}
	}
	for _, c := range changes {
		before, after := w.selection.matches(c.old), w.selection.matches(c.next)
		switch {
		case after && before:
			w.sendEntry(kwatch.Modified, c.next)
		case after:
			w.sendEntry(kwatch.Added, c.next)
		case before && c.next != nil:
			// The object left the selection: the event has its last selected state, with the version at which it left.
			left, err := c.old.withVersion(c.version)
			if err != nil {
				return err
			}
			w.sendEntry(kwatch.Deleted, left)
		case before:
			w.sendEntry(kwatch.Deleted, c.final)
		}
	}
	if mark {
		if err := w.mark(w.cursor, false); err != nil {
			return err
		}
	}
	w.w.flush()
	return nil
}

func (w *watch) mark(version uint64, initialEnd bool) error {
	if !w.bookmarks {
		return nil
	}
	e, err := bookmark(w.res, version, initialEnd)
	if err != nil {
		return err
	}
	w.sendEntry(kwatch.Bookmark, e)
	return nil
}

func (w *watch) sendEntry(t kwatch.EventType, e *entry) {
	if w.onFrame != nil {
		w.onFrame(t, e)
	}
	if w.frames+1 == w.fault.Undecodable || e.corrupt {
		w.send(string(t), e.undecodable(w.form, true))
		return
	}
	w.send(string(t), e.document(w.form))
}

// send writes one frame, or what a fault makes of it.
func (w *watch) send(t string, document []byte) {
	w.frames++
	frame := w.form.frame(t, document)
	switch w.frames {
	case w.fault.DropFrame:
		frame = nil
	case w.fault.GarbageFrame:
		frame = w.form.garbageFrame()
	case w.fault.DuplicateFrame:
		w.w.Write(frame)
	}
	w.w.Write(frame)
	if w.frames == w.fault.CutAfterFrames {
		w.w.abort()
	}
}
