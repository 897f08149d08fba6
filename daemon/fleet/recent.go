package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source/kube"
	"github.com/mirador-k8s/mirador/store"
)

// Clients of the daemon resume their watches after a restart at the version that they have reached, which may be older
// than the restored state. So the disk has the order of the last changes of each resource: in recentChunks values of up
// to recentLen changes, which are overwritten in turn. The states themselves are in the history.
const (
	recentChunks = 64
	recentLen    = 256
)

// recentChunk is a part of the order of changes. A chunk continues the one with the number before it, unless it is the
// first after a break: changes in between are not known.
type recentChunk struct {
	number  uint64
	segment int64 // the number of the last break, about its time in milliseconds
	broken  bool
	start   object.Version // the version before its first change
	// Of a break: the version of the state that the disk had before it, and a moment with that state. The version is empty
	// if the disk had no such state, and nothing before the break can be read.
	before  object.Version
	settled time.Time
	changes []recentChange
}

// recentChange is one change. state is the version of the object's new state, "" if it was deleted.
type recentChange struct {
	key     object.Key
	version object.Version // the resource's version after it
	state   object.Version
	at      time.Time
}

func recentName(id disk.Resource, number uint64) string {
	return fmt.Sprint(recentPrefix(id), number%recentChunks)
}

// recentPrefix is what the names of a resource's chunks begin with.
func recentPrefix(id disk.Resource) string {
	return fmt.Sprintf("%srecent %s ", disk.ClusterMeta(id.Cluster), id)
}

func (c *recentChunk) encode() []byte {
	b := binary.AppendUvarint(nil, c.number)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	if c.broken {
		b = append(b, brokenChunk)
		text(string(c.before))
		b = binary.AppendVarint(b, c.settled.UnixNano())
	} else {
		b = append(b, continuedChunk)
	}
	b = binary.AppendVarint(b, c.segment)
	text(string(c.start))
	for _, x := range c.changes {
		text(string(x.key))
		text(string(x.version))
		text(string(x.state))
		b = binary.AppendVarint(b, x.at.UnixNano())
	}
	return b
}

// The kinds of chunks on disk.
const (
	continuedChunk = 2
	brokenChunk    = 3
)

var errRecent = errors.New("the order of recent changes on disk is damaged")

func decodeRecent(b []byte) (c recentChunk, err error) {
	d := decoder{b: b}
	c.number = d.number()
	switch d.byte() {
	case brokenChunk:
		c.broken = true
		c.before, c.settled = object.Version(d.text()), time.Unix(0, d.signed())
	case continuedChunk:
	default:
		return c, errRecent
	}
	c.segment, c.start = d.signed(), object.Version(d.text())
	for len(d.b) > 0 && !d.bad {
		c.changes = append(c.changes, recentChange{key: object.Key(d.text()), version: object.Version(d.text()),
			state: object.Version(d.text()), at: time.Unix(0, d.signed())})
	}
	if d.bad {
		return c, errRecent
	}
	return c, nil
}

// readRecent returns the chunks without those before one that is missing or damaged, the oldest first.
func readRecent(d *disk.Disk, id disk.Resource) ([]recentChunk, error) {
	stored, err := d.Metas(recentPrefix(id))
	if err != nil {
		return nil, err
	}
	var all []recentChunk
	for n := range uint64(recentChunks) {
		if b := stored[recentName(id, n)]; b != nil {
			if c, err := decodeRecent(b); err == nil {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b recentChunk) int { return int(int64(a.number - b.number)) })
	for i := len(all) - 1; i > 0; i-- {
		if all[i-1].number != all[i].number-1 {
			return all[i:], nil
		}
	}
	return all, nil
}

// recentWriter writes the order of a resource's changes.
type recentWriter struct {
	id    disk.Resource
	known bool // chunk continues what is on disk
	chunk recentChunk
}

// follow adds changes to a batch. before is the version before them.
func (w *recentWriter) follow(b *disk.Batch, before object.Version, changes []recentChange) {
	for len(changes) > 0 {
		if len(w.chunk.changes) == recentLen {
			w.chunk = recentChunk{number: w.chunk.number + 1, segment: w.chunk.segment, start: before}
		}
		n := min(len(changes), recentLen-len(w.chunk.changes))
		w.chunk.changes = append(w.chunk.changes, changes[:n]...)
		before, changes = changes[n-1].version, changes[n:]
		b.SetMeta(recentName(w.id, w.chunk.number), w.chunk.encode())
	}
}

// load reads the last chunk, to continue it or to break off after it.
func (w *recentWriter) load(d *disk.Disk) error {
	if w.known {
		return nil
	}
	chunks, err := readRecent(d, w.id)
	if err != nil {
		return err
	}
	if len(chunks) > 0 {
		w.chunk = chunks[len(chunks)-1]
	}
	w.known = true
	return nil
}

// breakOff notes that the changes from what the disk knows, nil if that is nothing, up to a version are not known.
func (w *recentWriter) breakOff(b *disk.Batch, known *disk.StoredResource, version object.Version, now time.Time) {
	w.chunk = recentChunk{number: w.chunk.number + 1, segment: max(w.chunk.segment+1, now.UnixMilli()), broken: true,
		start: version}
	if known != nil {
		w.chunk.before, w.chunk.settled = known.Version, known.Settled
	}
	b.SetMeta(recentName(w.id, w.chunk.number), w.chunk.encode())
}

// restoredChanges are the changes that led to a restored state. They are read from disk when a client asks for them.
type restoredChanges struct {
	disk  *disk.Disk
	id    disk.Resource
	upTo  object.Version // of the restored state
	began time.Time      // when it was restored
	until time.Time      // when they are as old as no change in memory may be

	mu   sync.Mutex
	from object.Version // log has the changes after this version; "" before anything was read
	log  []store.LogEntry[*Object]
}

// since returns the changes after a version, up to the restored state. ok is false if they are not known.
func (r *restoredChanges) since(v object.Version) (log []store.LogEntry[*Object], ok bool) {
	if r == nil || !v.Before(r.upTo) {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().After(r.until) {
		r.log, r.from = nil, ""
		return nil, false
	}
	if r.from == "" {
		r.from = r.upTo
	}
	if v.Before(r.from) && r.readBack(v) != nil {
		return nil, false // the client lists
	}
	at, _ := slices.BinarySearchFunc(r.log, v, func(l store.LogEntry[*Object], v object.Version) int {
		if v.Before(l.Version) {
			return 1
		}
		return -1
	})
	return r.log[at:], true
}

// readBack adds older changes to the log: those after the beginning of the chunk that a version is in. So a chunk is
// read once, however many clients go on in it, and in whatever order they come.
func (r *restoredChanges) readBack(v object.Version) error {
	chunks, err := readRecent(r.disk, r.id)
	if err != nil {
		return err
	}
	chunks = r.segment(chunks)
	if len(chunks) == 0 || v.Before(chunks[0].start) {
		return store.ErrGone
	}
	from := chunks[0].start
	for _, c := range chunks {
		if !v.Before(c.start) {
			from = c.start
		}
	}
	log, err := r.read(chunks, from)
	if err != nil { // the history may have dropped what is before v
		from = v
		log, err = r.read(chunks, from)
	}
	if err != nil {
		return err
	}
	r.log, r.from = append(log, r.log...), from
	return nil
}

// read reads the changes after a version that are not in the log yet.
func (r *restoredChanges) read(chunks []recentChunk, from object.Version) (log []store.LogEntry[*Object], err error) {
	var missing []recentChange
	of := map[object.Key]objectChanges{}
	for _, c := range chunks {
		for _, x := range c.changes {
			if !from.Before(x.version) || r.from.Before(x.version) {
				continue
			}
			missing = append(missing, x)
			if first, ok := of[x.key]; ok {
				of[x.key] = objectChanges{first.first, x}
			} else {
				of[x.key] = objectChanges{x, x}
			}
		}
	}
	objects, err := readPast(r.disk, r.id, of)
	if err != nil {
		return nil, err
	}
	for _, x := range missing {
		o := objects[x.key]
		l := store.LogEntry[*Object]{Version: x.version, Key: x.key, Old: o.last, At: x.at}
		if x.state != "" {
			if l.New = o.states[x.state]; l.New == nil {
				return nil, store.ErrGone
			}
		}
		if l.Old == nil && l.New == nil {
			return nil, store.ErrGone // what was deleted is not in the history
		}
		o.last = l.New
		log = append(log, l)
	}
	return log, nil
}

// segment returns the chunks of the changes that led to the restored state: the last ones that continue each other, up
// to the first break of this process.
func (r *restoredChanges) segment(chunks []recentChunk) []recentChunk {
	for i := range chunks {
		if c := &chunks[i]; c.broken && c.segment >= r.began.UnixMilli() {
			if c.before != r.upTo {
				return nil // a later break, or one of an earlier process before the clock was set back
			}
			chunks = chunks[:i]
			break
		}
	}
	for i := len(chunks) - 1; i >= 0; i-- {
		if chunks[i].broken {
			return chunks[i:]
		}
	}
	return chunks
}

// pastObject has the states of an object: the last one before a change that is about to be replayed, and those after it.
type pastObject struct {
	last   *Entry
	states map[object.Version]*Entry
}

// objectChanges are the first and the last of some changes of an object.
type objectChanges struct{ first, last recentChange }

// readPast reads the states of objects from before their first change to their last one.
func readPast(d *disk.Disk, id disk.Resource, of map[object.Key]objectChanges) (all map[object.Key]*pastObject,
	err error) {
	reader, err := d.Objects(id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	all = make(map[object.Key]*pastObject, len(of))
	for _, key := range slices.Sorted(maps.Keys(of)) { // the order on disk, so that each part of it is read once
		if all[key], err = readPastObject(reader, of[key]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readPastObject(reader *disk.ObjectReader, of objectChanges) (*pastObject, error) {
	o := &pastObject{states: map[object.Version]*Entry{}}
	at := of.first.at
	for c, err := range reader.Changes(of.first.key, of.first.at) {
		if err != nil {
			return nil, err
		}
		if of.first.is(&c) {
			at = c.Time // the disk has moved it if another change had that time or a later one
		}
		if !c.Deleted {
			o.states[c.Version] = entryFrom(&c.State)
		}
		if of.last.is(&c) {
			break
		}
	}
	before, ok, err := reader.At(of.first.key, at.Add(-1))
	if err != nil {
		if _, tooEarly := errors.AsType[*disk.BeforeHistoryError](err); tooEarly { // the object did not exist
			return o, nil
		}
		return nil, err
	}
	if ok {
		o.last = entryFrom(&before)
	}
	return o, nil
}

// is reports whether a change on disk is this one.
func (x *recentChange) is(c *disk.Change) bool {
	if x.state == "" {
		return c.Deleted && c.Version == x.version
	}
	return !c.Deleted && c.Version == x.state
}

func entryFrom(s *disk.State) *Entry {
	e := entryOf(s)
	return store.EntryOf(&e, kube.RawCodec())
}

// concat yields two parts of a log.
func concat(first []store.LogEntry[*Object],
	rest iter.Seq[store.LogEntry[*Object]]) iter.Seq[store.LogEntry[*Object]] {
	return func(yield func(store.LogEntry[*Object]) bool) {
		for _, l := range first {
			if !yield(l) {
				return
			}
		}
		rest(yield)
	}
}
