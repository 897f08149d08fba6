package disk

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
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

func TestLabelsOfThePastAreThoseOfThenOrUnknown(t *testing.T) {
	for _, how := range []ResourceOptions{{History: true}, {History: true, Sealed: true}} {
		o := quiet(vfs.NewMem())
		o.Key = bytes.Repeat([]byte{7}, 32)
		d := mustOpen(t, "data", o)
		beginResource(t, d, pods, how)
		m, r := newMirror(t, pods), rand.New(rand.NewPCG(1, 2))
		var moments []map[object.Key]string // the labels of each object after each change
		now := map[object.Key]string{}
		b := d.NewBatch()
		b.Reach(pods, "1", start)
		for i := range 300 {
			key, at := object.Key(fmt.Sprint("shop/", r.IntN(12))), start.Add(time.Duration(i+1)*time.Second)
			if _, found := now[key]; found && r.IntN(5) == 0 {
				b.Delete(pods, key, "2", at)
				delete(now, key)
			} else {
				var labels []string
				if n := r.IntN(4); n > 0 {
					labels = append(labels, fmt.Sprint("n=", n/2))
				}
				b.Put(pods, m.state(t, key, i+1, at, fmt.Appendf(nil, `{"i":%d}`, i), labels...))
				now[key] = fmt.Sprint(labels)
			}
			moments = append(moments, maps.Clone(now))
			if r.IntN(3) == 0 {
				mustCommit(t, b)
			}
		}
		mustCommit(t, b)
		known, unknown := 0, 0
		for i, want := range moments {
			past, err := d.At(pods, start.Add(time.Duration(i+1)*time.Second), Filter{})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for s, err := range past.States() {
				if n++; err != nil {
					t.Fatal(err)
				}
				if s.LabelsUnknown {
					unknown++
				} else if known++; fmt.Sprint(s.Labels) != want[s.Key] {
					t.Fatalf("%s had the labels %q after change %d, want %s", s.Key, s.Labels, i, want[s.Key])
				}
			}
			if n != len(want) {
				t.Fatalf("%d objects after change %d, want %d", n, i, len(want))
			}
		}
		for c, err := range d.History(pods, Filter{}, start, time.Time{}) {
			if err != nil {
				t.Fatal(err)
			}
			i := int(c.Time.Sub(start)/time.Second) - 1
			if want := moments[i][c.Key]; !c.Deleted && !c.LabelsUnknown && fmt.Sprint(c.Labels) != want {
				t.Fatalf("%s had the labels %q in change %d, want %s", c.Key, c.Labels, i, want)
			}
		}
		if known == 0 || unknown == 0 {
			t.Errorf("the labels of %d states are known, those of %d are not; both must be tested", known, unknown)
		}
		mustClose(t, d)
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
