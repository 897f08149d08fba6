package store

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/object"
)

// The phases of a writer.
const (
	idle uint32 = iota
	batching
	replacing
	applying
)

// Writer changes a store. One goroutine may use it at a time. A call in the wrong phase, such as Begin while a batch
// is open or Put outside a batch, is a programming error and panics.
type Writer[T any] struct {
	sh       *shared[T]
	phase    atomic.Uint32
	replaces uint32 // number of lists begun
	epoch    uint64 // owner of the nodes that no snapshot shares
	seq      uint64
	objects  vec[slotValue[T]]
	keys     vec[*byte]
	words    vec[uint64]
	set      *indexSet[T]
	roots    []*trieNode

	version       object.Version // the store's version, including the open batch
	versionRecord *record[T]     // the record that has this version, if one of the open batch does
	explicit      object.Version // the argument of SetVersion in the open batch
	log           changeLog[T]
	pending       []change[T] // for the log

	keeper *keeper[T]
	values [][]string // scratch: results of the index functions, by index
	visits uint64     // scratch of reindex

	reindexed bool // the last object that was stored has other index values than before

	namespace [1]string // scratch of valuesOf
	fetched   uint32    // a sum over what Fetch reads, so that the compiler keeps the reads

	replace      *replacement[T] // the open list, also during a batch within it
	listed       bool            // a list was committed
	historyEnded bool            // EndHistory was called in the open batch
}

// change is a change of the open batch, for the log.
type change[T any] struct {
	version  object.Version
	key      object.Key
	old, now *record[T]
	indexed  []IndexValues
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
	w.sh.latest.Store(&Snapshot[T]{})
	w.publish()
	return w, nil
}

// Reader returns the reading side of the store.
func (w *Writer[T]) Reader() *Reader[T] { return &Reader[T]{sh: w.sh} }

// Get returns the entry of a key, including changes of the open batch.
func (w *Writer[T]) Get(key object.Key) (*Entry[T], bool) {
	t := w.sh.table.Load()
	_, at, found := w.locate(t, key)
	if !found {
		return nil, false
	}
	return t.cells[at].rec.Load().entry(), true
}

// Begin opens a batch. No snapshot shows any of it before Commit. Readers that ask for a snapshot in the meantime may
// have to wait for Commit, so a batch should not wait for anything.
//
// A batch may be opened while a list is open. Its changes are visible after its Commit; CommitReplace then decides the
// state of every object.
func (w *Writer[T]) Begin() {
	if !w.phase.CompareAndSwap(replacing, batching) {
		w.enter("Begin", idle, batching)
	}
	w.reclaim()
}

// Put stores an item's Value, with its Encoded bytes if the layout uses them; Decode is not called. It returns the new
// entry and the one that it replaced, or nil. The object belongs to the store from then on and must not be changed.
func (w *Writer[T]) Put(it object.Item[T]) (now, old *Entry[T]) {
	w.must("Put", batching)
	if w.replace != nil {
		w.stageStored(it.Key)
	}
	// The search comes before the first access to the object, so that the processor waits for both at the same time.
	hash, at, found := w.locate(w.sh.table.Load(), it.Key)
	w.evaluate(it.Key, it.Value, 0)
	rec := w.keeper.keep(&it)
	was := w.apply(hash, at, found, rec)
	w.keeper.drop(was)
	if w.replace != nil && w.staged(it.Key) {
		rec.mark = w.replace.mark // the list updates it, and does not delete and add it
	}
	if w.advance(it.Version) {
		w.versionRecord = rec
	}
	w.note(was, rec)
	return &rec.Entry, was.entry()
}

// Delete removes an object that was deleted at a version, and returns its entry, or nil if there is none. The store's
// version advances in either case.
func (w *Writer[T]) Delete(key object.Key, at object.Version) (old *Entry[T]) {
	w.must("Delete", batching)
	if w.replace != nil {
		w.stageStored(key)
	}
	was := w.remove(key)
	w.keeper.drop(was)
	w.advance(at)
	if was != nil {
		w.note(was, nil)
	}
	return was.entry()
}

// Last returns an entry for an object's last state, which is not stored. Options.OnWritten covers it like stored
// entries.
func (w *Writer[T]) Last(it object.Item[T]) *Entry[T] {
	e := newEntry(it)
	if w.keeper.cfg.onWritten != nil {
		w.keeper.watch(e, &it)
	}
	return e
}

// SetVersion sets the source's version at the end of this batch, whatever the versions of its objects. "" is ignored.
func (w *Writer[T]) SetVersion(v object.Version) {
	w.must("SetVersion", batching)
	if v != "" {
		w.explicit = v
	}
}

// EndHistory states that the open batch lacks changes or has them out of order: the log is dropped and starts again at
// the batch's version.
func (w *Writer[T]) EndHistory() {
	w.must("EndHistory", batching)
	w.historyEnded = true
}

// Commit ends the batch and returns its sequence number. Snapshots taken from now on show the batch.
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

// Reset drops all objects, the version and the log, and releases their memory. The indexes stay, empty. It counts as a
// batch, and aborts an open list. Snapshots that readers hold stay as they are.
func (w *Writer[T]) Reset() {
	if w.phase.Load() == replacing {
		w.AbortReplace()
	}
	w.enter("Reset", idle, applying)
	w.reclaim()
	w.objects, w.keys = vec[slotValue[T]]{}, vec[*byte]{}
	clear(w.roots)
	w.rebuild(0)
	w.keeper.reset()
	w.version, w.explicit, w.listed, w.pending = "", "", false, nil
	w.log.seq = w.seq + 1
	w.log.end("")
	w.publishHistory()
	w.seq++
	w.publish()
	w.leave(idle)
}

// advance sets the store's version to v if v is newer, and reports whether it did.
func (w *Writer[T]) advance(v object.Version) bool {
	if v == "" || w.version != "" && !w.version.Before(v) {
		return false
	}
	w.version = v
	return true
}

// note records a change for the log.
func (w *Writer[T]) note(old, now *record[T]) {
	if w.sh.cfg.logBytes <= 0 {
		return
	}
	key := old.keyOr(now)
	c := change[T]{w.version, key, old, now, nil}
	if now != nil && (old == nil || w.reindexed) {
		c.indexed = w.indexedValues(now)
	}
	w.pending = append(w.pending, c)
}

func (r *record[T]) keyOr(other *record[T]) object.Key {
	if r != nil {
		return r.Key
	}
	return other.Key
}

// settle sets the store's version, moves the batch's changes to the log and publishes both. Readers see them before
// they see the batch's snapshot, so a version that a reader knows is never missing in the log. changed is whether the
// batch has changes.
func (w *Writer[T]) settle(changed bool) {
	if w.sh.cfg.logBytes <= 0 && !changed && !w.historyEnded && w.log.start != "" &&
		(w.explicit == "" || w.explicit == w.version) {
		w.explicit = "" // no log, and the changes have already set the version: the case of nearly every event
		w.publishVersion()
		w.keeper.count()
		return
	}
	w.settleLog(changed)
}

// settleLog is the general case of settle.
func (w *Writer[T]) settleLog(changed bool) {
	before, now := *w.sh.version.Load(), time.Time{}
	if w.sh.cfg.logBytes > 0 {
		now = time.Now()
	}
	w.log.seq = w.seq + 1
	if len(w.pending) > 0 && before != "" && !before.Before(w.pending[0].version) {
		// A late change: its version was published before without it.
		w.log.end(before)
		w.log.ambiguous = true
	}
	for _, c := range w.pending {
		w.log.append(&c, now)
	}
	clear(w.pending)
	w.pending = w.pending[:0]
	if cap(w.pending) > maxScratch {
		w.pending = nil
	}
	if v := w.explicit; v != "" {
		if order, ok := v.Compare(w.version); w.version != "" && (!ok || order < 0) {
			w.log.end(v) // the version went back, so the old versions do not lead to this one
		}
		w.version, w.explicit = v, ""
	}
	if w.historyEnded {
		w.log.end(w.version)
		w.historyEnded = false
	}
	if changed && w.version == before {
		// Two states have the same version, for example because changes were coalesced. The version does not say
		// which of them a reader has.
		w.log.end(w.version)
		w.log.ambiguous = true
	}
	if w.log.start == "" {
		w.log.start = w.version
	}
	w.log.trim(now)
	w.publishHistory()
	w.keeper.count()
}

func (w *Writer[T]) publishHistory() {
	if h := w.log.view(w.version); h != *w.sh.history.Load() {
		w.sh.history.Store(new(h))
	}
	w.publishVersion()
}

func (w *Writer[T]) publishVersion() {
	rec := w.versionRecord
	w.versionRecord = nil
	switch {
	case w.version == *w.sh.version.Load():
	case rec != nil && rec.Version == w.version:
		// Use the record's copy of the version, to save an allocation. If the record is replaced or deleted and the
		// version stays, one object is kept that is no longer stored.
		w.sh.version.Store(&rec.Version)
	default:
		w.sh.version.Store(new(w.version))
	}
}

// maxScratch is the largest capacity of a buffer that is kept for the next batch.
const maxScratch = 4096

// enter moves the writer from one phase to another, and panics if it is in a third.
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
