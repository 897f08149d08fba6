package disk

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullDisk says how many bytes are free.
type fullDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (f *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 40}, nil
}

func TestADatabaseThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	fs := &fullDisk{FS: vfs.NewMem()}
	fs.free.Store(1 << 40)
	d := mustOpen(t, "data", quiet(fs))
	beginResource(t, d, pods, ResourceOptions{})
	mustClose(t, d)

	fs.free.Store(1 << 20)
	if _, err := Open("data", quiet(fs)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("opened on a full disk: %v", err)
	}
	o := quiet(fs)
	o.Retry = true
	d = mustOpen(t, "data", o)
	defer mustClose(t, d)
	if h := d.Health(); !errors.Is(h.Err, syscall.ENOSPC) || h.Since.IsZero() {
		t.Errorf("health: %+v", h)
	}
	if _, err := d.Clusters(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a read: %v", err)
	}
	if err := d.CheckKey(); err != nil {
		t.Errorf("the key: %v", err)
	}
	b := d.NewBatch()
	b.Gap(pods, start, start)
	if err := b.Commit(); err == nil {
		t.Error("a commit succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	fs.free.Store(1 << 40)
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := d.Clusters(); err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("it was not opened: %v", d.Health().Err)
		}
	}
	b.Gap(pods, start, start)
	mustCommit(t, b)
}

func TestAnotherKeyIsFoundAtTheStart(t *testing.T) {
	fs := vfs.NewMem()
	open := func(key []byte) *Disk {
		o := quiet(fs)
		o.Key = key
		return mustOpen(t, "data", o)
	}
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	d := open(first)
	beginResource(t, d, pods, ResourceOptions{Sealed: true})
	mustClose(t, d)
	for _, c := range []struct {
		key  []byte
		fits bool
	}{{first, true}, {nil, true}, {second, false}} {
		d := open(c.key)
		if err := d.CheckKey(); (err == nil) != c.fits {
			t.Errorf("key %x: %v", c.key, err)
		}
		if c.fits {
			if damages, err := d.Verify(t.Context(), nil); err != nil || len(damages) > 0 {
				t.Errorf("key %x: %v, %v", c.key, damages, err)
			}
		}
		mustClose(t, d)
	}
}

func TestAFolderIsOpenOnce(t *testing.T) {
	dir := t.TempDir()
	d := mustOpen(t, dir, Options{Logger: silent})
	defer mustClose(t, d)
	if _, err := Open(dir, Options{Logger: silent}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
}

func TestAFolderAboveItsLimitIsOpened(t *testing.T) {
	fs := vfs.NewMem()
	d := mustOpen(t, "data", quiet(fs))
	beginResource(t, d, pods, ResourceOptions{})
	mustClose(t, d)
	o := quiet(fs)
	o.MaxBytes = 100
	d = mustOpen(t, "data", o)
	defer mustClose(t, d)
	if d.Health().Bytes < o.MaxBytes {
		t.Fatal("the folder is not above its limit, so the test proves nothing")
	}
	if _, err := d.Clusters(); err != nil {
		t.Error(err)
	}
}
