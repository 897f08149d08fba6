package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
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
	broken  bool
	start   object.Version // the version before its first change
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
	return fmt.Sprintf("recent %s %d", id, number%recentChunks)
}

func (c *recentChunk) encode() []byte {
	b := binary.AppendUvarint(nil, c.number)
	flag := byte(0)
	if c.broken {
		flag = 1
	}
	b = append(b, flag)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(string(c.start))
	for _, x := range c.changes {
		text(string(x.key))
		text(string(x.version))
		text(string(x.state))
		b = binary.AppendVarint(b, x.at.UnixNano())
	}
	return b
}

var errRecent = errors.New("the order of recent changes on disk is damaged")

func decodeRecent(b []byte) (c recentChunk, err error) {
	d := recentDecoder{b: b}
	c.number = d.number()
	c.broken = d.flag()
	c.start = object.Version(d.text())
	for len(d.b) > 0 && !d.bad {
		x := recentChange{key: object.Key(d.text()), version: object.Version(d.text()), state: object.Version(d.text())}
		at, size := binary.Varint(d.b)
		if d.bad = d.bad || size <= 0; d.bad {
			break
		}
		d.b = d.b[size:]
		x.at = time.Unix(0, at)
		c.changes = append(c.changes, x)
	}
	if d.bad {
		return c, errRecent
	}
	return c, nil
}

// recentDecoder reads values from bytes that may be damaged. After the first bad value, all are zero.
type recentDecoder struct {
	b   []byte
	bad bool
}

func (d *recentDecoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if d.bad = d.bad || size <= 0; d.bad {
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *recentDecoder) text() string {
	n := d.number()
	if d.bad = d.bad || n > uint64(len(d.b)); d.bad {
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *recentDecoder) flag() bool {
	if d.bad = d.bad || len(d.b) == 0; d.bad {
		return false
	}
	set := d.b[0] == 1
	d.b = d.b[1:]
	return set
}

// readRecent returns the chunks up to the last one that continue each other, the oldest first. last returns the number of
// the last one; nil means any. It is called when all are read.
func readRecent(d *disk.Disk, id disk.Resource, last func() *uint64) ([]recentChunk, error) {
	var all []recentChunk
	for n := range uint64(recentChunks) {
		b, err := d.Meta(recentName(id, n))
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		c, err := decodeRecent(b)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if n := last(); n != nil {
		all = slices.DeleteFunc(all, func(c recentChunk) bool { return c.number > *n })
	}
	slices.SortFunc(all, func(a, b recentChunk) int { return int(int64(a.number - b.number)) })
	for i := len(all) - 1; i > 0; i-- {
		if all[i].broken || all[i-1].number != all[i].number-1 {
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
			w.chunk = recentChunk{number: w.chunk.number + 1, start: before}
		}
		n := min(len(changes), recentLen-len(w.chunk.changes))
		w.chunk.changes = append(w.chunk.changes, changes[:n]...)
		before, changes = changes[n-1].version, changes[n:]
		b.SetMeta(recentName(w.id, w.chunk.number), w.chunk.encode())
	}
}

// breakOff notes that the changes up to a version are not known. before are those that led to the restored state.
func (w *recentWriter) breakOff(d *disk.Disk, b *disk.Batch, version object.Version, before *restoredChanges) error {
	if err := w.find(d); err != nil && !errors.Is(err, errRecent) {
		return err
	}
	before.endWith(w.chunk.number)
	w.chunk = recentChunk{number: w.chunk.number + 1, broken: true, start: version}
	b.SetMeta(recentName(w.id, w.chunk.number), w.chunk.encode())
	return nil
}

// goOn makes the next changes continue those on disk, which lead to a version.
func (w *recentWriter) goOn(d *disk.Disk, version object.Version) error {
	if err := w.find(d); err != nil {
		return err
	}
	w.chunk = recentChunk{number: w.chunk.number + 1, start: version}
	return nil
}

// find finds the newest chunk on disk.
func (w *recentWriter) find(d *disk.Disk) error {
	if w.known {
		return nil
	}
	chunks, err := readRecent(d, w.id, func() *uint64 { return nil })
	if len(chunks) > 0 {
		w.chunk.number = chunks[len(chunks)-1].number
	}
	w.known = err == nil || errors.Is(err, errRecent)
	return err
}

// restoredChanges are the changes that led to a restored state. They are read from disk when a client asks for them.
type restoredChanges struct {
	disk  *disk.Disk
	id    disk.Resource
	upTo  object.Version // of the restored state
	until time.Time      // when they are as old as no change in memory may be

	last atomic.Pointer[uint64] // the last chunk that leads to the restored state or follows it; nil if all do

	mu   sync.Mutex
	from object.Version // log has the changes after this version; "" before anything was read
	log  []store.LogEntry[*Object]
}

// endWith is called before the order is broken off, with the number of the last chunk before.
func (r *restoredChanges) endWith(last uint64) {
	if r != nil {
		r.last.CompareAndSwap(nil, &last)
	}
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
	if r.from == "" || v.Before(r.from) {
		log, err := r.read(v)
		if err != nil {
			return nil, false // the client lists
		}
		r.from, r.log = v, log
	}
	at, _ := slices.BinarySearchFunc(r.log, v, func(l store.LogEntry[*Object], v object.Version) int {
		if v.Before(l.Version) {
			return 1
		}
		return -1
	})
	return r.log[at:], true
}

// read reads the changes after a version.
func (r *restoredChanges) read(v object.Version) (log []store.LogEntry[*Object], err error) {
	chunks, err := readRecent(r.disk, r.id, r.last.Load)
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 || v.Before(chunks[0].start) {
		return nil, store.ErrGone
	}
	objects := map[object.Key]*pastObject{}
	for _, c := range chunks {
		for _, x := range c.changes {
			if !v.Before(x.version) || r.upTo.Before(x.version) {
				continue
			}
			o := objects[x.key]
			if o == nil {
				if o, err = readPast(r.disk, r.id, x); err != nil {
					return nil, err
				}
				objects[x.key] = o
			}
			l := store.LogEntry[*Object]{Version: x.version, Key: x.key, Old: o.last, At: x.at}
			if x.state != "" {
				if l.New = o.states[x.state]; l.New == nil {
					return nil, store.ErrGone
				}
			}
			o.last = l.New
			log = append(log, l)
		}
	}
	return log, nil
}

// pastObject has the states of an object: the last one before a change that is about to be replayed, and those after it.
type pastObject struct {
	last   *Entry
	states map[object.Version]*Entry
}

// readPast reads the states of an object around its first change.
func readPast(d *disk.Disk, id disk.Resource, first recentChange) (*pastObject, error) {
	o := &pastObject{states: map[object.Version]*Entry{}}
	only := disk.Filter{Key: first.key}
	before, err := d.At(id, first.at.Add(-time.Nanosecond), only)
	var tooEarly *disk.BeforeHistoryError
	switch {
	case errors.As(err, &tooEarly): // the object did not exist
	case err != nil:
		return nil, err
	default:
		for s, err := range before.States() {
			if err != nil {
				return nil, err
			}
			o.last = entryFrom(&s)
		}
	}
	for c, err := range d.History(id, only, first.at, time.Time{}) {
		if err != nil {
			return nil, err
		}
		if !c.Deleted {
			o.states[c.Version] = entryFrom(&c.State)
		}
	}
	return o, nil
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
