package store

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// Options say what a store keeps besides its objects. The zero Options are valid.
type Options[T any] struct {
	// Indexes are there from the start; AddIndexes adds others later.
	Indexes map[string]IndexFunc[T]
	// LogBytes bounds the log of changes: the sum of the sizes of the objects before
	// and after each change, and 64 for each. 0 means no log.
	LogBytes int
	// LogAge bounds the log by time; 0 does not.
	LogAge time.Duration
	// Layout is the form in which the objects are kept.
	Layout Layout
	// Codec encodes and decodes objects for the packed layout where an item brings no
	// codec of its own. An object without any is kept live.
	Codec *object.Codec[T]
	// ReadCache is how many objects the packed layout keeps decoded because they were
	// read or written a moment ago, unless they are larger than 64 KiB. 0 means 256, a negative number none.
	ReadCache int
	// OnWritten, if it is set, is told of every stored object that somebody has written to,
	// with the names of those who may have done it. It is for tests: each
	// read then costs a hash of the object, and each object a copy of its encoding. It runs
	// where that is found out, as OnError does, under the same restrictions.
	OnWritten func(Written)
	// OnError is told of an index function that failed or panicked on an object, and,
	// with an empty key, of a ByIndex on an index that does not exist; and, with an
	// empty index, of an object that cannot be kept in the layout. It runs where
	// that happened: in the writer, inside a batch, or in any reader. It must
	// neither use the writer nor ask for a snapshot.
	OnError func(key object.Key, index string, err error)
}

// What a writer is in the middle of.
const (
	idle uint32 = iota
	batching
	replacing
	applying
)

// Writer changes a store. One goroutine may use it at a time. Calls out of their
// order, such as a Begin while a batch is open or a Put outside of one, are mistakes
// of the program and panic with a text that says so.
type Writer[T any] struct {
	sh       *shared[T]
	phase    atomic.Uint32
	replaces uint32 // how many lists were begun
	// epoch is the owner of the nodes that no snapshot shares.
	epoch   uint64
	seq     uint64
	objects vec[seat[T]]
	keys    vec[*byte]
	words   vec[uint64]
	set     *indexSet[T]
	roots   []*trieNode

	version  object.Version // the store's, with what the open batch moved it to
	bearer   *record[T]     // the record that moved it there, if one did
	explicit object.Version // what SetVersion asked for in the open batch
	log      changeLog[T]
	pending  []change[T] // for the log

	keeper *keeper[T]
	values [][]string // scratch: what the index functions gave, by index
	visits uint64     // scratch of reindex

	namespace [1]string // scratch of valuesOf
	fetched   uint32    // a sum over what Fetch has read, so that the compiler keeps the reads

	replace *replacement[T] // the open list; also during a batch beside it
	listed  bool            // one was committed
	torn    bool            // EndHistory was called in the open batch
}

// change is a change of the open batch.
type change[T any] struct {
	version  object.Version
	key      object.Key
	old, now *record[T]
}

// New makes an empty store.
func New[T any](opts Options[T]) (*Writer[T], error) {
	set, err := (&indexSet[T]{}).with(opts.Indexes)
	if err != nil {
		return nil, err
	}
	cfg := &config[T]{
		seed:     maphash.MakeSeed(),
		onError:  opts.OnError,
		logBytes: opts.LogBytes,
		logAge:   opts.LogAge,
		born:     time.Now(),
		layout:   opts.Layout,

		onWritten: opts.OnWritten,
	}
	switch {
	case int(opts.Layout) >= len(layoutNames):
		return nil, fmt.Errorf("make a store: there is no %v; choose Live, Shared or Packed", opts.Layout)
	case opts.ReadCache == 0:
		cfg.readCache = 256
	case opts.ReadCache > 0:
		cfg.readCache = opts.ReadCache
	}
	w := &Writer[T]{sh: &shared[T]{cfg: cfg}, epoch: 1, log: changeLog[T]{cfg: cfg}, keeper: newKeeper(cfg, &opts)}
	w.useIndexes(set)
	w.rebuild(0)
	w.sh.history.Store(&history[T]{})
	w.sh.version.Store(new(object.Version))
	w.sh.offer.Store(&Snapshot[T]{})
	w.publish()
	return w, nil
}

// Reader returns the reading side of the store.
func (w *Writer[T]) Reader() *Reader[T] { return &Reader[T]{sh: w.sh} }

// Get returns the entry of a key, as the open batch left it.
func (w *Writer[T]) Get(key object.Key) (*Entry[T], bool) {
	t := w.sh.table.Load()
	_, at, found := w.locate(t, key)
	if !found {
		return nil, false
	}
	return t.cells[at].rec.Load().entry(), true
}

// Begin opens a batch. No snapshot shows any of it before Commit. Readers that ask
// for a snapshot meanwhile may have to wait for Commit, so a batch should not wait
// for anything.
//
// A batch may be opened while a list is open: its changes are visible with its Commit, and the list has the last word
// on every object when it is committed.
func (w *Writer[T]) Begin() {
	if !w.phase.CompareAndSwap(replacing, batching) {
		w.enter("Begin", idle, batching)
	}
	w.withdraw()
}

// Put stores an item's Value, with its Encoded bytes where the layout wants them; Decode is
// not called. It returns the entry that was made of it and the one that was there
// before, nil if there was none. The object belongs to the store from then on and
// must not be changed.
func (w *Writer[T]) Put(it object.Item[T]) (now, old *Entry[T]) {
	w.must("Put", batching)
	if w.replace != nil {
		w.secure(it.Key)
	}
	// The search comes before the first look at the object: both wait for memory, and so they wait together.
	hash, at, found := w.locate(w.sh.table.Load(), it.Key)
	w.evaluate(it.Key, it.Value, 0)
	rec := w.keeper.keep(&it)
	was := w.apply(hash, at, found, rec)
	w.keeper.drop(was)
	if w.replace != nil && w.staged(it.Key) {
		rec.mark = w.replace.mark // the list changes it; it is not deleted and added
	}
	if w.advance(it.Version) {
		w.bearer = rec
	}
	w.note(was, rec)
	return &rec.Entry, was.entry()
}

// Delete removes an object that was deleted at a version, and returns it, or nil if
// it is not there. The version counts in any case.
func (w *Writer[T]) Delete(key object.Key, at object.Version) (old *Entry[T]) {
	w.must("Delete", batching)
	if w.replace != nil {
		w.secure(key)
	}
	was := w.remove(key)
	w.keeper.drop(was)
	w.advance(at)
	if was != nil {
		w.note(was, nil)
	}
	return was.entry()
}

// Last makes an entry of an object's last state, which is never stored but is handed out like what is: where
// Options.OnWritten asks for it, it is under guard.
func (w *Writer[T]) Last(it object.Item[T]) *Entry[T] {
	e := newEntry(it)
	if w.keeper.cfg.onWritten != nil {
		w.keeper.watch(e, &it)
	}
	return e
}

// SetVersion says which version of the source the store is at when this batch ends,
// whatever the versions of its objects. "" says nothing.
func (w *Writer[T]) SetVersion(v object.Version) {
	w.must("SetVersion", batching)
	if v != "" {
		w.explicit = v
	}
}

// EndHistory says of the open batch that changes were left out of it or are out of
// their order: the log ends with it, and starts again at its version.
func (w *Writer[T]) EndHistory() {
	w.must("EndHistory", batching)
	w.torn = true
}

// Commit ends the batch and returns its sequence number. Every snapshot asked for
// from now on shows this batch.
func (w *Writer[T]) Commit() (seq uint64) {
	w.must("Commit", batching)
	w.settle(len(w.pending) > 0)
	w.seq++
	w.publish()
	if w.replace != nil {
		w.leave(replacing)
	} else {
		w.leave(idle)
	}
	return w.seq
}

// Reset drops all objects, the version and the log, and releases their memory; the
// indexes stay, empty. It counts as a batch. A replace that was open is aborted.
// Snapshots that readers hold stay as they are.
func (w *Writer[T]) Reset() {
	if w.phase.Load() == replacing {
		w.AbortReplace()
	}
	w.enter("Reset", idle, applying)
	w.withdraw()
	w.objects, w.keys = vec[seat[T]]{}, vec[*byte]{}
	clear(w.roots)
	w.rebuild(0)
	w.keeper.reset()
	w.version, w.explicit, w.listed, w.pending = "", "", false, nil
	w.log.end("")
	w.publishHistory()
	w.seq++
	w.publish()
	w.leave(idle)
}

// advance moves the store's version on, if v is newer, and reports that.
func (w *Writer[T]) advance(v object.Version) bool {
	if v == "" || w.version != "" && !w.version.Before(v) {
		return false
	}
	w.version = v
	return true
}

func (w *Writer[T]) note(old, now *record[T]) {
	if w.sh.cfg.logBytes <= 0 {
		return
	}
	key := old.keyOr(now)
	w.pending = append(w.pending, change[T]{w.version, key, old, now})
}

func (r *record[T]) keyOr(other *record[T]) object.Key {
	if r != nil {
		return r.Key
	}
	return other.Key
}

// settle fixes the store's version, moves the batch's changes to the log and
// publishes both. Readers see them before they see the batch's snapshot, so a
// version that they know is never missing in the log. changed says whether the batch has
// changes.
func (w *Writer[T]) settle(changed bool) {
	if w.sh.cfg.logBytes <= 0 && !changed && !w.torn && w.log.start != "" &&
		(w.explicit == "" || w.explicit == w.version) {
		w.explicit = "" // there is no log, and the version is where the changes have moved it: as of nearly every event
		w.publishVersion()
		w.keeper.count()
		return
	}
	w.settleLog(changed)
}

// settleLog is settle without its short way: for a list, which may have ended the log already.
func (w *Writer[T]) settleLog(changed bool) {
	before, now := *w.sh.version.Load(), time.Duration(0)
	if w.sh.cfg.logBytes > 0 {
		now = time.Since(w.sh.cfg.born)
	}
	if len(w.pending) > 0 && before != "" && !before.Before(w.pending[0].version) {
		// A change that came late, to a version that was announced without it.
		w.log.end(before)
		w.log.vague = true
	}
	for _, c := range w.pending {
		w.log.append(c.version, c.key, c.old, c.now, now)
	}
	clear(w.pending)
	w.pending = w.pending[:0]
	if cap(w.pending) > maxScratch {
		w.pending = nil
	}
	if v := w.explicit; v != "" {
		if order, ok := v.Compare(w.version); w.version != "" && (!ok || order < 0) {
			w.log.end(v) // set back: no order leads from the old versions to this one
		}
		w.version, w.explicit = v, ""
	}
	if w.torn {
		w.log.end(w.version)
		w.torn = false
	}
	if changed && w.version == before {
		// The same version for two states, as where coalescing left history behind: nobody
		// can say from it what happened since.
		w.log.end(w.version)
		w.log.vague = true
	}
	if w.log.start == "" {
		w.log.start = w.version
	}
	w.log.trim(now)
	w.publishHistory()
	w.keeper.count()
}

func (w *Writer[T]) publishHistory() {
	if h := w.log.view(); h != *w.sh.history.Load() {
		w.sh.history.Store(new(h))
	}
	w.publishVersion()
}

func (w *Writer[T]) publishVersion() {
	rec := w.bearer
	w.bearer = nil
	switch {
	case w.version == *w.sh.version.Load():
	case rec != nil && rec.Version == w.version:
		// Where it stands already: to allocate it was a tenth of the update of one object. If the record is replaced
		// or deleted and the version does not move, one object stays that is no longer stored.
		w.sh.version.Store(&rec.Version)
	default:
		w.sh.version.Store(new(w.version))
	}
}

// maxScratch is how large a buffer may be to be kept for the next batch.
const maxScratch = 4096

// enter moves the writer from one phase to another, or says what is wrong.
func (w *Writer[T]) enter(call string, from, to uint32) {
	if !w.phase.CompareAndSwap(from, to) {
		w.misused(call)
	}
}

func (w *Writer[T]) must(call string, phase uint32) {
	if w.phase.Load() != phase {
		w.misused(call)
	}
}

func (w *Writer[T]) leave(to uint32) { w.phase.Store(to) }

func (w *Writer[T]) misused(call string) {
	doing := [...]string{
		idle:      "no batch is open: call Begin or BeginReplace first",
		batching:  "a batch is open: Commit it first, and use the writer from one goroutine at a time",
		replacing: "a replace is open: end it with CommitReplace or AbortReplace first",
		applying:  "another call is running: use the writer from one goroutine at a time",
	}
	panic("store: " + call + ": " + doing[w.phase.Load()])
}
