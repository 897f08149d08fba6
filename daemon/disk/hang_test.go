package disk

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestADiskThatHangsHoldsOnlyTheCommit looks at the health in fake time.
func TestADiskThatHangsHoldsOnlyTheCommit(t *testing.T) {
	hang, hangs := make(chan struct{}), make(chan struct{}, 1)
	var slow atomic.Bool
	syncs := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if slow.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			select {
			case hangs <- struct{}{}:
			default:
			}
			<-hang
		}
		return nil
	})
	var passed atomic.Int64
	w, err := newWorkload(t, 1, quiet(errorfs.Wrap(vfs.NewMem(), syncs)))
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, w.batch())
	b := w.batch()
	w.disk.opts.now = func() time.Time { return start.Add(time.Duration(passed.Load())) }
	slow.Store(true)
	done := make(chan error)
	go func() { done <- b.Commit() }()
	<-hangs
	if h := w.disk.Health(); h.Err != nil {
		t.Errorf("the health after no time: %v", h.Err)
	}
	passed.Store(int64(time.Minute))
	h := w.disk.Health()
	if h.Err == nil || !strings.Contains(h.Err.Error(), "has not ended for 1m0s") || !h.Since.Equal(start) {
		t.Errorf("the health after a minute: %v since %s", h.Err, h.Since)
	}
	if _, err := newestOf(w.disk, w.mirrors); err != nil {
		t.Errorf("read while the disk hangs: %v", err)
	}
	close(hang)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if h := w.disk.Health(); h.Err != nil {
		t.Errorf("the health when it hangs no more: %v", h.Err)
	}
	mustClose(t, w.disk)
}

// Pebble would repeat the flush for ever, and the commit would keep the lock that opening the database again needs.
func TestACommitThatWaitsForAFlushEndsWhenTheManifestFails(t *testing.T) {
	var bad atomic.Bool
	stalled := make(chan struct{})
	manifest := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if bad.Load() && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST-") {
			<-stalled
			return syscall.EIO
		}
		return nil
	})
	o := quiet(errorfs.Wrap(vfs.NewMem(), manifest))
	o.tune = crashTune
	w, err := newWorkload(t, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, w.batch())
	waits := make(chan struct{})
	w.disk.engine.options.EventListener.WriteStallBegin = func(pebble.WriteStallBeginInfo) { close(waits) }
	bad.Store(true)
	done := make(chan error, 1)
	go func() {
		for {
			if err := w.batch().Commit(); err != nil {
				done <- err
				return
			}
		}
	}()
	<-waits
	close(stalled)
	if err := <-done; !errors.Is(err, syscall.EIO) {
		t.Errorf("the error of the commit is %v", err)
	}
	bad.Store(false)
	var closing sync.WaitGroup
	if err := w.disk.revive(&closing); err != nil {
		t.Fatal(err)
	}
	closing.Wait()
	mustCommit(t, w.batch())
	mustClose(t, w.disk)
}

// The old engine would empty a file that the new one has made under the same name.
func TestAFolderIsOpenedAgainWhenTheOldEngineHasCreatedItsLastFile(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	tables := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") && hold.CompareAndSwap(true, false) {
			close(begun)
			<-goOn
		}
		return nil
	})
	o := quiet(errorfs.Wrap(vfs.NewMem(), tables))
	o.tune = crashTune
	w, err := newWorkload(t, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	hold.Store(true)
	for created := false; !created; {
		mustCommit(t, w.batch())
		select {
		case <-begun:
			created = true
		default:
		}
	}
	old := w.disk.engine.files
	old.fail(syscall.EIO)
	var closing sync.WaitGroup
	revived := make(chan error, 1)
	go func() { revived <- w.disk.revive(&closing) }()
	for waits := false; !waits; runtime.Gosched() {
		select {
		case err := <-revived:
			t.Fatalf("it was opened again, with %v, while the old engine creates a file", err)
		default:
		}
		old.mu.Lock()
		waits = old.ended != nil
		old.mu.Unlock()
	}
	close(goOn)
	if err := <-revived; err != nil {
		t.Fatal(err)
	}
	closing.Wait()
	mustCommit(t, w.batch())
	mustClose(t, w.disk)
}
