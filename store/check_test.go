package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"github.com/mirador-k8s/mirador/object"
)

// checkVec walks a vector and returns an error for a missing or superfluous node.
func checkVec[V any](v *vec[V]) error {
	if v.pages == nil {
		if len(v.few) != v.n {
			return fmt.Errorf("a small vector has %d values and a length of %d", len(v.few), v.n)
		}
		return nil
	}
	if v.few != nil || v.n <= width/2 {
		return fmt.Errorf("vector of %d is a tree and has %d values beside it", v.n, len(v.few))
	}
	if want := (v.n + 1<<pageShift - 1) >> pageShift; len(v.pages) != want {
		return fmt.Errorf("vector of %d has %d pages, want %d", v.n, len(v.pages), want)
	}
	for i, p := range v.pages {
		if p.owner > v.owner {
			return fmt.Errorf("a page of epoch %d is below one of %d", p.owner, v.owner)
		}
		left := v.n - i<<pageShift
		want := min(pageWidth, (left+width-1)/width)
		for j, l := range p.leaves {
			if (l != nil) != (j < want) {
				return fmt.Errorf("leaf %d of page %d of a vector of %d: present %v", j, i, v.n, l != nil)
			}
			if l == nil {
				if p.own>>j&1 != 0 {
					return fmt.Errorf("page %d owns leaf %d, which does not exist", i, j)
				}
				continue
			}
			var zero V
			for k := max(0, left-j*width); k < width; k++ {
				if any(l[k]) != any(zero) {
					return fmt.Errorf("a value is left after the end, at %d of %d", i<<pageShift+j*width+k, v.n)
				}
			}
		}
	}
	return nil
}

func checkTrie(n *trieNode, shift uint, prefix uint64, top bool, newest uint64) error {
	if n == nil {
		return nil
	}
	if n.owner > newest {
		return fmt.Errorf("a trie node of epoch %d is below one of %d", n.owner, newest)
	}
	if len(n.items) == 0 || !top && len(n.items) == 1 && n.items[0].leaf != nil {
		return fmt.Errorf("a trie node at shift %d has %d items", shift, len(n.items))
	}
	for pos, it := range n.items {
		if (it.sub == nil) == (it.leaf == nil) {
			return fmt.Errorf("a trie item is neither a node nor a bucket, or both")
		}
		if it.leaf != nil {
			if it.leaf.slots.n == 0 {
				return fmt.Errorf("value %q has an empty bucket", it.leaf.h.value)
			}
			if it.leaf.owner > n.owner {
				return fmt.Errorf("a bucket of epoch %d is below a node of %d", it.leaf.owner, n.owner)
			}
			if err := checkVec(&it.leaf.slots); err != nil {
				return fmt.Errorf("bucket %q: %w", it.leaf.h.value, err)
			}
			if shift < hashBits {
				if bit, at := n.place(it.leaf.h.hash, shift); n.bitmap&bit == 0 || at != pos {
					return fmt.Errorf("value %q is in the wrong place", it.leaf.h.value)
				}
			}
			if mask := uint64(1)<<shift - 1; it.leaf.h.hash&mask != prefix&mask {
				return fmt.Errorf("value %q is in the wrong node", it.leaf.h.value)
			}
			continue
		}
		digit := uint64(0)
		for b, seen := 0, -1; b < 32; b++ {
			if n.bitmap&(1<<b) != 0 {
				if seen++; seen == pos {
					digit = uint64(b)
				}
			}
		}
		if err := checkTrie(it.sub, shift+5, prefix|digit<<shift, false, n.owner); err != nil {
			return err
		}
	}
	return nil
}

// check walks everything that a writer holds and compares the parts with each other.
func (w *Writer[T]) check(t testing.TB) {
	t.Helper()
	fail := func(format string, args ...any) { t.Helper(); t.Fatalf("invariant: "+format, args...) }
	tab := w.sh.table.Load()
	if tab.live != w.objects.n {
		fail("table has %d records for %d objects", tab.live, w.objects.n)
	}
	used, live := 0, 0
	for i := range tab.cells {
		c := &tab.cells[i]
		hash, rec, wd := c.hash.Load(), c.rec.Load(), w.words.get(i)
		switch {
		case hash == emptyCell || hash == goneCell:
			if rec != nil || c.obj != nil || c.key.Load() != nil || wd != hash {
				fail("cell %d is not in use and has record %v, word %x", i, rec != nil, wd)
			}
		case rec == nil || hash != hashKey(w.sh.cfg.seed, rec.Key):
			fail("cell %d has a hash that is not its record's", i)
		default:
			live++
			if wd != word(rec.slot, hash) {
				fail("cell %d of %q has word %x, want %x", i, rec.Key, wd, word(rec.slot, hash))
			}
			if int(rec.slot) >= w.objects.n || w.objects.get(int(rec.slot)).rec != rec {
				fail("%q is not in its slot %d", rec.Key, rec.slot)
			}
			if w.sh.cfg.keysStay() && w.keys.get(int(rec.slot)) != unsafe.StringData(string(rec.Key)) {
				fail("the key of %q is not where its slot says", rec.Key)
			}
			if tab.get(hash, rec.Key) != rec || c.obj != tab.pointers.of(rec) {
				fail("%q is not found from its hash, or not its object", rec.Key)
			}
		}
		if hash != emptyCell {
			used++
		}
	}
	if used != tab.used || live != tab.live || used > len(tab.cells)/4*3 || tab.sparse() {
		fail("table of %d: %d/%d used, %d/%d live", len(tab.cells), used, tab.used, live, tab.live)
	}
	if keys := w.keys.n; keys != w.objects.n && (keys != 0 || w.sh.cfg.keysStay()) {
		fail("%d keys for %d objects", keys, w.objects.n)
	}
	if w.words.n != len(tab.cells) {
		fail("%d words for %d cells", w.words.n, len(tab.cells))
	}
	for _, err := range []error{checkVec(&w.objects), checkVec(&w.words), checkVec(&w.keys)} {
		if err != nil {
			fail("%v", err)
		}
	}
	refs := 0
	for i := range w.objects.n {
		rec := w.objects.get(i).rec
		var last uint32
		for i := range rec.refs.len() {
			r := rec.refs.at(i)
			refs++
			b := w.roots[r.index].find(r.h.hash, r.h.value)
			if b == nil || b != r.h.cur || b.slots.get(int(r.pos)) != rec.slot {
				fail("%q is not where it should be in index %s, value %q", rec.Key, w.set.names[r.index], r.h.value)
			}
			if r.index < last {
				fail("the values of %q are not in the order of the indexes", rec.Key)
			}
			last = r.index
		}
	}
	for i, root := range w.roots {
		if err := checkTrie(root, 0, 0, true, w.epoch); err != nil {
			fail("index %s: %v", w.set.names[i], err)
		}
		root.each(func(b *bucket) bool { refs -= b.slots.n; return true })
	}
	if refs != 0 {
		fail("objects and buckets disagree by %d entries", refs)
	}
	w.checkLog(t)
}

func (w *Writer[T]) checkLog(t testing.TB) {
	t.Helper()
	bytes := 0
	last := w.log.start
	for c := w.log.first; c != nil; c = c.next {
		bytes += c.bytes
		for i := range c.n {
			e := c.entries[i]
			if e.Version.Before(last) {
				t.Fatalf("invariant: the log goes back from %s to %s", last, e.Version)
			}
			last = e.Version
		}
	}
	if bytes != w.log.bytes || bytes > max(0, w.sh.cfg.logBytes) {
		t.Fatalf("invariant: the log has %d bytes, counts %d and may have %d", bytes, w.log.bytes, w.sh.cfg.logBytes)
	}
}

// known is an entry of the model.
type known struct {
	Key     object.Key
	Version object.Version
	UID     string
	Size    int
	Object  thing
}

func (k known) item() object.Item[thing] {
	return object.Item[thing]{Key: k.Key, Version: k.Version, UID: k.UID, Size: k.Size, Value: k.Object}
}

// of returns the known of an entry, and the zero known for nil.
func of(e *Entry[thing]) known {
	if e == nil {
		return known{}
	}
	return known{e.Key, e.Version, e.UID, e.Size, e.Object()}
}

// want is what a snapshot must contain according to the model.
type want struct {
	seq     uint64
	version object.Version
	objects map[object.Key]known
	indexes map[string]IndexFunc[thing]
}

// checkSnapshot reads a snapshot through each of its methods and compares it with the model.
func checkSnapshot(t testing.TB, s *Snapshot[thing], m want) {
	t.Helper()
	if s.Seq() != m.seq || s.Version() != m.version || s.Len() != len(m.objects) {
		t.Fatalf("snapshot is seq %d version %q len %d, want %d %q %d", s.Seq(), s.Version(), s.Len(), m.seq,
			m.version, len(m.objects))
	}
	for _, err := range []error{checkVec(&s.objects), checkVec(&s.words), checkVec(&s.keys)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	seen := map[object.Key]bool{}
	for e := range s.Entries() {
		if seen[e.Key] || m.objects[e.Key] != of(e) {
			t.Fatalf("snapshot yields %+v (a second time: %v), want %+v", of(e), seen[e.Key], m.objects[e.Key])
		}
		seen[e.Key] = true
	}
	if len(seen) != len(m.objects) {
		t.Fatalf("snapshot yields %d objects, want %d", len(seen), len(m.objects))
	}
	for key, e := range m.objects {
		if got, ok := s.Entry(key); !ok || of(got) != e {
			t.Fatalf("Entry(%q) = %+v, %v, want %+v", key, of(got), ok, e)
		}
	}
	for i := range 40 {
		key := object.Key(fmt.Sprintf("k%d", i))
		if _, ok := s.Get(key); ok != seen[key] {
			t.Fatalf("Get(%q) = %v, want %v", key, ok, seen[key])
		}
	}
	keys := []object.Key{}
	for k, o := range s.Ordered() {
		keys = append(keys, k)
		if m.objects[k].Object != o {
			t.Fatalf("Ordered yields %v for %q", o, k)
		}
	}
	if !slices.Equal(keys, slices.Sorted(maps.Keys(m.objects))) {
		t.Fatalf("Ordered yields %v", keys)
	}
	if got := len(s.roots); got != len(m.indexes) {
		t.Fatalf("snapshot has %d indexes, want %d", got, len(m.indexes))
	}
	for name, fn := range m.indexes {
		checkIndex(t, s, name, fn, m.objects)
	}
}

func checkIndex(t testing.TB, s *Snapshot[thing], name string, fn IndexFunc[thing], objects map[object.Key]known) {
	t.Helper()
	wantBuckets := map[string]map[object.Key]bool{}
	for key, e := range objects {
		values, err := callIndex(fn, e.Object)
		if err != nil {
			continue
		}
		for _, v := range values {
			if wantBuckets[v] == nil {
				wantBuckets[v] = map[object.Key]bool{}
			}
			wantBuckets[v][key] = true
		}
	}
	x, err := s.Index(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkTrie(x.root, 0, 0, true, 1<<63); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(x.Values()); !slices.Equal(got, slices.Sorted(maps.Keys(wantBuckets))) {
		t.Fatalf("index %s has values %q, want %q", name, got, slices.Sorted(maps.Keys(wantBuckets)))
	}
	for v, wantKeys := range wantBuckets {
		got := map[object.Key]bool{}
		for e := range x.Entries(v) {
			if got[e.Key] || !wantKeys[e.Key] || of(e) != objects[e.Key] {
				t.Fatalf("index %s value %q yields %+v, want one of %v", name, v, *e, wantKeys)
			}
			got[e.Key] = true
		}
		if len(got) != len(wantKeys) || x.Len(v) != len(wantKeys) {
			t.Fatalf("index %s value %q yields %d objects, Len is %d, want %d", name, v, len(got), x.Len(v), len(wantKeys))
		}
	}
}
