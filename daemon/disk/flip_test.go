//go:build !race

package disk

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// folderOf makes a file system of files.
func folderOf(t testing.TB, files map[string][]byte) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data/db", 0o700); err != nil {
		t.Fatal(err)
	}
	for path, b := range files {
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(append([]byte(nil), b...)); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// kindOfFile tells the kinds of files apart, as Pebble names them.
func kindOfFile(path string) string {
	base := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case strings.HasPrefix(base, "MANIFEST-"):
		return "manifest"
	case strings.HasPrefix(base, "OPTIONS-"):
		return "options"
	case strings.HasPrefix(base, "marker."):
		return "marker"
	case strings.HasSuffix(base, ".sst"):
		return "table"
	case strings.HasSuffix(base, ".log"):
		return "log"
	}
	return base
}

// crashedFolder returns the files of a folder with tables, and with a log that has batches which are in no table.
func crashedFolder(t *testing.T) (*workload, map[string][]byte) {
	fs := vfs.NewCrashableMem()
	o := quiet(fs)
	o.tune = crashTune
	w, err := newWorkload(t, 7, o)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		mustCommit(t, w.batch())
		w.note()
	}
	files := contentsOf(t, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: w.r}), "data")
	mustClose(t, w.disk)
	return w, files
}

// 25 flips in each kind of file, 400 with MIRADOR_NIGHTLY.
func TestAFlippedBitIsDetectedAndNeverData(t *testing.T) {
	t.Parallel()
	w, files := crashedFolder(t)
	r := rand.New(rand.NewPCG(1, 1))
	last := len(w.newest) - 1
	live := liveFiles(t, w, files)
	byKind := map[string][]string{}
	for path := range files {
		if kindOfFile(path) == "table" && !live[path] {
			continue // it was replaced, and is removed when the folder is opened
		}
		byKind[kindOfFile(path)] = append(byKind[kindOfFile(path)], path)
	}
	for _, kind := range []string{"table", "log", "manifest", "options", "marker", "format", "ledger", "lock"} {
		if len(byKind[kind]) == 0 {
			t.Errorf("there is no file of the kind %s", kind)
		}
	}
	for kind, paths := range byKind {
		found := map[string]int{}
		for range number(25, 400) {
			path := paths[r.IntN(len(paths))]
			if len(files[path]) == 0 {
				continue
			}
			damaged := maps.Clone(files)
			b := append([]byte(nil), files[path]...)
			bit := r.IntN(8 * len(b))
			b[bit/8] ^= 1 << (bit % 8)
			damaged[path] = b
			how := flipped(t, w, damaged, last)
			if strings.HasPrefix(how, "false: ") {
				t.Errorf("a flip of bit %d of %d in %s: %s", bit, 8*len(b), path, how)
			}
			if how == harmless && (kind == "table" || kind == "manifest" || kind == "format") {
				t.Errorf("nothing finds a flip of bit %d of %d in %s", bit, 8*len(b), path)
			}
			found[how]++
		}
		t.Logf("%-8s %v", kind, found)
	}
}

func TestALogOrManifestThatIsCutOffIsDamageAndNotAnOlderState(t *testing.T) {
	t.Parallel()
	w, files := crashedFolder(t)
	last := len(w.newest) - 1
	for path, whole := range files {
		if kind := kindOfFile(path); kind != "log" && kind != "manifest" || len(whole) == 0 {
			continue
		}
		found := map[string]int{}
		for range 20 {
			damaged := maps.Clone(files)
			damaged[path] = whole[:w.r.IntN(len(whole))]
			how := flipped(t, w, damaged, last)
			if strings.HasPrefix(how, "false: ") {
				t.Errorf("%s with %d of %d bytes: %s", path, len(damaged[path]), len(whole), how)
			}
			found[how]++
		}
		t.Logf("%s: %v", path, found)
	}
}

// flipped says how damage in one file is found.
func flipped(t *testing.T, w *workload, files map[string][]byte, last int) string {
	d, err := Open("data", w.onDisk(folderOf(t, files)))
	if err != nil {
		return "by Open"
	}
	defer d.Close()
	newest, readErr := newestOf(d, w.mirrors)
	if readErr == nil && newest != w.newest[last] {
		return "false: it has another state"
	}
	changes, historyErr := changesOf(d, w.mirrors, 1)
	damage, err := d.Verify(t.Context(), nil)
	switch {
	case readErr != nil || historyErr != nil:
		if len(damage) == 0 && err == nil {
			return "false: a read finds it and Verify does not"
		}
		return "by a read"
	case len(changes) != len(w.changes[last]):
		return "false: it has another history"
	case len(damage) > 0 || err != nil:
		return "by Verify"
	}
	return harmless
}

// harmless is damage that changes nothing: in a part of a file that is not used.
const harmless = "it does no harm"

// liveFiles returns the tables that are used.
func liveFiles(t *testing.T, w *workload, files map[string][]byte) map[string]bool {
	d := mustOpen(t, "data", w.onDisk(folderOf(t, files)))
	defer mustClose(t, d)
	tables, err := d.engine.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]bool{}
	for _, level := range tables {
		for i := range level {
			live[fmt.Sprintf("data/db/%06d.sst", uint64(level[i].BackingSSTNum))] = true
		}
	}
	return live
}
