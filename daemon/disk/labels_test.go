package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
)

var pods = Resource{"eu", "", "v1", "pods"}

// start is when most tests begin.
var start = time.Date(2026, 11, 17, 10, 0, 0, 0, time.UTC)

// noCompression lets a test find what was written in the files.
func noCompression(s *engineSizes) { s.compression = sstable.NoCompression }

func TestLabelsAreRestoredWithEveryResource(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	for _, how := range []ResourceOptions{{}, {History: true}, {Sealed: true}, {Sealed: true, History: true}} {
		t.Run(fmt.Sprintf("%+v", how), func(t *testing.T) {
			dir := t.TempDir()
			o := Options{Key: key, tune: noCompression, Logger: quiet(nil).Logger}
			d := mustOpen(t, dir, o)
			beginResource(t, d, pods, how)
			p := newMirror(t, pods)
			var want []string
			put := func(b *Batch, key string, version int, labels ...string) {
				s := p.state(t, object.Key(key), version, start, fmt.Appendf(nil, `{"secret":"value-%d"}`, version),
					labels...)
				b.Put(pods, s)
				want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, key+" ") })
				want = append(want, textOf(&s))
				slices.Sort(want)
			}
			b := d.NewBatch()
			for i := range 20 {
				put(b, fmt.Sprintf("shop/pod-%02d", i), 100+i, "app=classified", fmt.Sprint("n=", i%3))
			}
			put(b, "shop/none", 130)
			b.Reach(pods, "130", start)
			mustCommit(t, b)
			put(b, "shop/none", 140, "app=late")
			put(b, "shop/pod-03", 141)
			put(b, "shop/pod-04", 142, "app=other")
			put(b, "shop/pod-04", 143, "app=classified", "n=9")
			b.Delete(pods, "shop/pod-05", "144", start)
			want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, "shop/pod-05 ") })
			mustCommit(t, b)
			for range 2 {
				if got := restoredTexts(t, d, pods); !slices.Equal(got, want) {
					t.Fatalf("restored\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				mustClose(t, d)
				for _, clear := range []string{"classified", "value-1", "app=other"} {
					if found := filesWith(t, dir, clear); how.Sealed && len(found) > 0 {
						t.Errorf("%q is in %q", clear, found)
					} else if !how.Sealed && clear == "classified" && len(found) == 0 {
						t.Errorf("%q is in no file, so this test finds nothing", clear)
					}
				}
				d = mustOpen(t, dir, o)
				// The labels that were there are known again.
				put(b, "shop/pod-06", 200, "app=classified", "n=0")
				b.disk = d
				b.Reach(pods, "200", start.Add(time.Second))
				mustCommit(t, b)
			}
			mustClose(t, d)
		})
	}
}

func TestHistoryThatBeginsLaterFindsLabelsFromBefore(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	defer mustClose(t, d)
	beginResource(t, d, pods, ResourceOptions{})
	p := newMirror(t, pods)
	b := d.NewBatch()
	b.Put(pods, p.state(t, "shop/a", 1, start, []byte(`{"a":1}`), "app=web"))
	b.Reach(pods, "1", start)
	mustCommit(t, b)
	b.Put(pods, p.state(t, "shop/b", 2, start, []byte(`{"b":1}`), "app=web"))
	if err := b.Open(pods, ResourceOptions{History: true}); err != nil {
		t.Fatal(err)
	}
	b.Reach(pods, "2", start.Add(time.Second))
	mustCommit(t, b)
	v, err := d.view(pods)
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	var found []string
	prefix := appendPosting(nil, v.desc.id, "app=web", "")
	err = scan(v.snap, prefix, func(k, _ []byte) error {
		found = append(found, string(k[len(prefix):]))
		return nil
	})
	if want := []string{"shop/a", "shop/b"}; err != nil || !slices.Equal(found, want) {
		t.Fatalf("found %q (%v), want %q", found, err, want)
	}
}

// beginResource opens a resource of a new cluster.
func beginResource(t testing.TB, d *Disk, res Resource, o ResourceOptions) {
	t.Helper()
	b := d.NewBatch()
	b.SetCluster(res.Cluster, "uid-of-"+res.Cluster)
	if err := b.Open(res, o); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, b)
}

// textOf is everything of a state but its time.
func textOf(s *State) string {
	b, err := s.AppendJSON(nil)
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s %s %s %d %q %s", s.Key, s.Version, s.UID, s.Size, s.Labels, b)
}

// restoredTexts returns the newest states of a resource.
func restoredTexts(t testing.TB, d *Disk, res Resource) (out []string) {
	t.Helper()
	r, err := d.Restore(res)
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range r.States() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, textOf(&s))
	}
	return out
}

// filesWith returns the files below dir that have the text in their bytes.
func filesWith(t testing.TB, dir string, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
