package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/store"
)

// TestASecondProcessIsRefused runs itself as the second process.
func TestASecondProcessIsRefused(t *testing.T) {
	if dir := os.Getenv("DISK_TEST_FOLDER"); dir != "" {
		_, err := Open(dir, Options{Logger: silent})
		fmt.Println("the second process:", err)
		return
	}
	dir := t.TempDir()
	d := mustOpen(t, dir, Options{Logger: silent})
	second := exec.Command(os.Args[0], "-test.run=^TestASecondProcessIsRefused$")
	second.Env = append(os.Environ(), "DISK_TEST_FOLDER="+dir)
	out, err := second.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "in use by another process") {
		t.Errorf("%s (%v)", out, err)
	}
	if _, err := Open(dir, Options{Logger: silent}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("the same process opens it twice: %v", err)
	}
	mustClose(t, d)
	mustClose(t, mustOpen(t, dir, Options{Logger: silent}))
}

func TestOtherFormatsAreUpgradedOrRefused(t *testing.T) {
	current := fmt.Sprintf(formatText, formatVersion, store.PackedFormat)
	for name, c := range map[string]struct{ text, want string }{
		"this one":       {current, ""},
		"a newer one":    {fmt.Sprintf(formatText, formatVersion+1, store.PackedFormat), "start the mirador that wrote it"},
		"an unknown old": {fmt.Sprintf(formatText, formatVersion-1, store.PackedFormat), "start the mirador that wrote it"},
		"other objects":  {fmt.Sprintf(formatText, formatVersion, store.PackedFormat+1), "start the mirador that wrote it"},
		"another file":   {"hello\n", "is not one that mirador has written"},
		"nothing":        {"", "is not one that mirador has written"},
		"more lines":     {current + "x", "is not one that mirador has written"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			mustClose(t, mustOpen(t, "data", quiet(mem)))
			writeFile(t, mem, "data/format", c.text)
			before := contentsOf(t, mem, "data")
			d, err := Open("data", quiet(mem))
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				mustClose(t, d)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want %q", err, c.want)
			}
			after := contentsOf(t, mem, "data")
			for path, b := range before {
				if !bytes.Equal(after[path], b) {
					t.Errorf("%s has changed", path)
				}
			}
		})
	}
	t.Run("data without a format", func(t *testing.T) {
		mem := vfs.NewMem()
		mustClose(t, mustOpen(t, "data", quiet(mem)))
		if err := mem.Remove("data/format"); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("data", quiet(mem)); err == nil || !strings.Contains(err.Error(), "restore that file") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a folder of something else", func(t *testing.T) {
		mem := vfs.NewMem()
		if err := mem.MkdirAll("data/lost+found", 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, mem, "data/main.go", "package main")
		_, err := Open("data", quiet(mem))
		if err == nil || !strings.Contains(err.Error(), `it has "main.go"; give an empty or a new folder`) {
			t.Errorf("the error is %v", err)
		}
		if files := contentsOf(t, mem, "data"); len(files) != 1 {
			t.Errorf("it has %d files", len(files))
		}
		if err := mem.Remove("data/main.go"); err != nil {
			t.Fatal(err)
		}
		writeFile(t, mem, "data/format.new", "") // the first start was interrupted
		mustClose(t, mustOpen(t, "data", quiet(mem)))
	})
	t.Run("one that can be upgraded", func(t *testing.T) {
		upgraded := false
		upgrades[formatVersion-1] = func(*Disk) error { upgraded = true; return nil }
		defer delete(upgrades, formatVersion-1)
		mem := vfs.NewMem()
		mustClose(t, mustOpen(t, "data", quiet(mem)))
		writeFile(t, mem, "data/format", fmt.Sprintf(formatText, formatVersion-1, store.PackedFormat))
		mustClose(t, mustOpen(t, "data", quiet(mem)))
		if text, err := readFile(mem, "data/format"); !upgraded || text != current || err != nil {
			t.Errorf("upgraded: %v, the format is %q (%v)", upgraded, text, err)
		}
	})
}

// contentsOf reads all files below a folder.
func contentsOf(t testing.TB, fs vfs.FS, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			for sub, b := range contentsOf(t, fs, path) {
				out[sub] = b
			}
			continue
		}
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		out[path] = b
	}
	return out
}

func writeFile(t *testing.T, mem vfs.FS, path, text string) {
	t.Helper()
	f, err := mem.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(text)); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "below", "data")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if errors.Is(err, os.ErrNotExist) {
				return nil // pebble has removed it meanwhile
			}
			if err != nil {
				return err
			}
			if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; info.Mode().Perm() != want {
				t.Errorf("%s has the mode %o, want %o", path, info.Mode().Perm(), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Logger: silent, tune: crashTune}
	for range 2 {
		d := mustOpen(t, dir, o)
		beginResource(t, d, pods, ResourceOptions{History: true})
		m, b := newMirror(t, pods), d.NewBatch()
		for i := range 100 {
			b.Put(pods, m.state(t, "shop/a", i+1, start, jsonOf("shop/a", 1, i, fmt.Sprintf("%x", i*i)), "app=web"))
			mustCommit(t, b)
		}
		if err := d.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		check()
		mustClose(t, d)
		check()
	}
}

func TestWhatIsSealedNeedsItsKey(t *testing.T) {
	mem := vfs.NewMem()
	o := quiet(mem)
	o.Key = bytes.Repeat([]byte{1}, 32)
	d := mustOpen(t, "data", o)
	beginResource(t, d, pods, ResourceOptions{Sealed: true})
	b := d.NewBatch()
	b.Put(pods, newMirror(t, pods).state(t, "shop/a", 1, start, []byte(`{"a":1}`)))
	b.Reach(pods, "1", start)
	mustCommit(t, b)
	mustClose(t, d)

	for _, key := range [][]byte{nil, bytes.Repeat([]byte{2}, 32)} {
		o.Key = key
		d = mustOpen(t, "data", o)
		if r, err := d.Restore(pods); err == nil || !strings.Contains(err.Error(), "give") {
			t.Errorf("with the key %x it is read: %v, %v", key, r, err)
		}
		b = d.NewBatch()
		if err := b.Open(pods, ResourceOptions{Sealed: true}); (err == nil) != (key != nil) {
			t.Errorf("with the key %x: %v", key, err)
		}
		mustClose(t, d)
	}
	o.Key = bytes.Repeat([]byte{1}, 32)
	d = mustOpen(t, "data", o)
	if got := restoredTexts(t, d, pods); len(got) != 1 {
		t.Errorf("read %q", got)
	}
	mustClose(t, d)

	o.Key = bytes.Repeat([]byte{2}, 32)
	d = mustOpen(t, "data", o)
	beginResource(t, d, pods, ResourceOptions{Sealed: true}) // drops what the other key has sealed
	if _, err := d.Restore(pods); !errors.As(err, new(*UnknownError)) {
		t.Errorf("what another key has sealed is there: %v", err)
	}
	mustClose(t, d)
	o.Key = []byte("short")
	if _, err := Open("data", o); err == nil || !strings.Contains(err.Error(), "32 bytes") {
		t.Errorf("a short key: %v", err)
	}
}
