package disk

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// textsOf returns the records of a file as texts.
func textsOf(t *testing.T, d *Disk, name string) (all []string) {
	t.Helper()
	records, err := d.ReadRecords(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		all = append(all, string(r))
	}
	return all
}

func TestRecordsAreReadUpToWhatIsDamaged(t *testing.T) {
	mem := vfs.NewMem()
	d := mustOpen(t, "data", quiet(mem))
	r := d.OpenRecords()
	f := r.Create("a", [][]byte{[]byte("one"), {}})
	f.Append([]byte("three"))
	r.Create("b", nil).Append([]byte("other"))
	r.Create("gone", nil)
	r.Remove("gone")
	f.Close()
	r.Close()
	f.Append([]byte("too late"))
	if names, err := d.RecordFiles(); err != nil || strings.Join(names, " ") != "a b" {
		t.Errorf("the files are %v, %v", names, err)
	}
	const want = "one||three"
	if got := strings.Join(textsOf(t, d, "a"), "|"); got != want || !f.Failed() {
		t.Errorf("read %s; failed %v", got, f.Failed())
	}
	whole := contentsOf(t, mem, "data/records")["data/records/a"]
	for i := range whole {
		var cut, flipped, zeros []string
		writeFile(t, mem, "data/records/a", string(whole[:i]))
		cut = textsOf(t, d, "a")
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		writeFile(t, mem, "data/records/a", string(b))
		flipped = textsOf(t, d, "a")
		writeFile(t, mem, "data/records/a", string(whole[:i])+strings.Repeat("\x00", 100))
		zeros = textsOf(t, d, "a")
		for how, got := range map[string][]string{"cut": cut, "flipped": flipped, "followed by zeros": zeros} {
			if text := strings.Join(got, "|"); len(got) > 2 || !strings.HasPrefix(want, text) {
				t.Errorf("%s at byte %d: %q", how, i, got)
			}
		}
	}
	mustClose(t, d)
}

func TestRecordsCountAsSpaceOfTheFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet(vfs.NewMem())
		o.MaxBytes = MinMaxBytes
		d := mustOpen(t, "data", o)
		r := d.OpenRecords()
		before := d.space.used()
		kept := r.Create("kept", [][]byte{make([]byte, 1000)})
		large := r.Create("large", nil)
		for range 2 * MinMaxBytes / maxRecord {
			large.Append(make([]byte, maxRecord))
			synctest.Wait()
		}
		r.Close()
		if !large.Failed() || d.space.used() > MinMaxBytes {
			t.Errorf("%d bytes in a folder of at most %d, and the file has failed: %v", d.space.used(), MinMaxBytes,
				large.Failed())
		}
		mustClose(t, d)
		d = mustOpen(t, "data", o)
		if kept.Failed() || len(textsOf(t, d, "kept")) != 1 || d.space.used() < before+maxRecord {
			t.Errorf("after a restart, %d bytes", d.space.used())
		}
		r = d.OpenRecords()
		r.Remove("large")
		r.Close()
		if d.space.used() > before+maxRecord {
			t.Errorf("%d bytes without the large file", d.space.used())
		}
		mustClose(t, d)
	})
}

// backlog returns how many bytes wait to be written.
func backlog(r *Records) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

func TestAFolderThatFailsOrHangsDelaysNoWriterOfRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails, hangs atomic.Bool
		hang := make(chan struct{})
		faulty := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !strings.Contains(op.Path, recordsFolder) || op.Kind != errorfs.OpFileWrite {
				return nil
			}
			if hangs.Load() {
				<-hang
			}
			if fails.Load() {
				return syscall.EIO
			}
			return nil
		})
		d := mustOpen(t, "data", quiet(errorfs.Wrap(vfs.NewMem(), faulty)))
		r := d.OpenRecords()
		first := r.Create("first", [][]byte{[]byte("a")})
		synctest.Wait()
		fails.Store(true)
		first.Append([]byte("b"))
		synctest.Wait()
		fails.Store(false)
		first.Append([]byte("c"))
		second := r.Create("second", nil)
		synctest.Wait()
		if got := strings.Join(textsOf(t, d, "first"), ""); !first.Failed() || second.Failed() || got != "a" {
			t.Errorf("after a failed write: %q, failed %v and %v", got, first.Failed(), second.Failed())
		}
		hangs.Store(true)
		for i := range 3 * maxRecordsWaiting / maxRecord {
			second.Append(fmt.Appendf(make([]byte, maxRecord-8), "%d", i))
		}
		if backlog(r) > maxRecordsWaiting || !second.Failed() {
			t.Errorf("%d bytes wait for a folder that hangs, and the file has failed: %v", backlog(r), second.Failed())
		}
		begin := time.Now()
		r.Close()
		if took := time.Since(begin); took > recordsEnd {
			t.Errorf("the end took %v", took)
		}
		close(hang)
		<-r.done
		mustClose(t, d)
	})
}

// A cluster that is dropped leaves no name of an object behind.
func TestDroppingAClusterRemovesRecords(t *testing.T) {
	d := mustOpen(t, "data", quiet(vfs.NewMem()))
	beginResource(t, d, pods, ResourceOptions{History: true})
	r := d.OpenRecords()
	r.Create("a", [][]byte{[]byte("one")})
	r.Close()
	if err := d.DropCluster(pods.Cluster); err != nil {
		t.Fatal(err)
	}
	if names, err := d.RecordFiles(); len(names) != 0 || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	mustClose(t, d)
}
