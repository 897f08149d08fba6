package disk

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files is the file system that an engine writes to. Beside the one below it, it does four things:
//
//   - Files get mode 0600.
//   - It counts the bytes of all files and refuses those above the limit.
//   - The first failure that leaves it open what is on disk stops it: nothing is changed on disk after that, so that
//     the next engine finds what was there at that moment. Pebble ends the process when such an operation fails, so it
//     is told that it succeeded. Whoever wants to know what became of a write asks stopped.
//   - It keeps the sums of logs and manifests in the ledger.
type files struct {
	vfs.FS
	space  *space
	ledger *ledger

	stop    atomic.Pointer[error]
	stopped chan struct{}
	once    sync.Once
	misses  atomic.Int32 // writes of tables that failed in succession
}

func newFiles(below vfs.FS, space *space, ledger *ledger) *files {
	return &files{FS: below, space: space, ledger: ledger, stopped: make(chan struct{})}
}

// fail stops all changes on disk.
func (f *files) fail(err error) {
	f.once.Do(func() {
		f.stop.Store(&err)
		close(f.stopped)
	})
}

// failure returns the error that stopped the changes, or nil.
func (f *files) failure() error {
	if err := f.stop.Load(); err != nil {
		return *err
	}
	return nil
}

// essential reports whether pebble cannot go on if a write to the file fails.
func essential(name string) bool { return strings.HasSuffix(name, ".log") }

// pause delays a background write that follows failed ones, because pebble repeats those at once.
func (f *files) pause() {
	n := f.misses.Load()
	if n == 0 {
		return
	}
	t := time.NewTimer(min(time.Millisecond<<min(n, 10), time.Second))
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.stopped:
	}
}

// note counts failed writes of tables.
func (f *files) note(err error) error {
	if err != nil {
		f.misses.Add(1)
	} else if f.misses.Load() != 0 {
		f.misses.Store(0)
	}
	return err
}

// Create creates a file of mode 0600.
func (f *files) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !essential(name) {
		f.pause()
	}
	if err := f.failure(); err != nil {
		return f.instead(name, err)
	}
	f.space.forget(name)
	below, err := f.FS.Create(name, category)
	return f.wrap(name, below, err)
}

// OpenReadWrite opens or creates a file of mode 0600.
func (f *files) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if err := f.failure(); err != nil {
		return f.instead(name, err)
	}
	below, err := f.FS.OpenReadWrite(name, category, o...)
	return f.wrap(name, below, err)
}

// ReuseForWrite renames a log and opens it.
func (f *files) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.failure(); err != nil {
		return f.instead(to, err)
	}
	below, err := f.FS.ReuseForWrite(from, to, category)
	if err == nil {
		f.space.rename(from, to)
		f.ledger.forget(from)
	}
	return f.wrap(to, below, err)
}

// wrap returns the file that pebble gets.
func (f *files) wrap(name string, below vfs.File, err error) (vfs.File, error) {
	if err == nil && below.Fd() != vfs.InvalidFd {
		if err = os.Chmod(name, 0o600); err != nil {
			below.Close()
		}
	}
	if err != nil {
		if essential(name) {
			f.fail(err)
		}
		f.note(err)
		return f.instead(name, err)
	}
	return &file{File: below, files: f, name: name, essential: essential(name), sum: f.ledger.begin(name)}, nil
}

// instead returns a file without bytes for one that pebble cannot do without, or the error.
func (f *files) instead(name string, err error) (vfs.File, error) {
	if !essential(name) {
		return nil, err
	}
	return &file{File: nothing{}, files: f, name: name, essential: true}, nil
}

// change runs an operation that changes the folder.
func (f *files) change(do func() error) error {
	if err := f.failure(); err != nil {
		return err
	}
	return do()
}

// Link makes a second name for a file. It counts as another file.
func (f *files) Link(from, to string) error {
	return f.change(func() error { return f.FS.Link(from, to) })
}

// Remove removes a file.
func (f *files) Remove(name string) error {
	return f.change(func() error {
		err := f.FS.Remove(name)
		if err == nil {
			f.space.forget(name)
			f.ledger.forget(name)
		}
		return err
	})
}

// RemoveAll removes a folder.
func (f *files) RemoveAll(name string) error {
	return f.change(func() error { return f.FS.RemoveAll(name) })
}

// Rename renames a file.
func (f *files) Rename(from, to string) error {
	return f.change(func() error {
		err := f.FS.Rename(from, to)
		if err == nil {
			f.space.rename(from, to)
		}
		return err
	})
}

// MkdirAll creates a folder of mode 0700.
func (f *files) MkdirAll(dir string, _ os.FileMode) error {
	return f.change(func() error { return f.FS.MkdirAll(dir, 0o700) })
}

// OpenDir opens a folder to sync it.
func (f *files) OpenDir(name string) (vfs.File, error) {
	below, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &file{File: below, files: f, name: name, essential: true}, nil
}

// Lock does nothing: the Disk has a lock of its own, which it keeps while engines come and go.
func (f *files) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// GetDiskUsage returns how much pebble may still write. It makes smaller compactions if that is little.
func (f *files) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	u, err := f.FS.GetDiskUsage(path)
	if err != nil && f.space.limit == 0 {
		return u, err
	}
	if err != nil {
		u = vfs.DiskUsage{AvailBytes: uint64(f.space.limit), TotalBytes: uint64(f.space.limit)}
	} else {
		u.AvailBytes -= min(u.AvailBytes, reserve)
	}
	if f.space.limit > 0 {
		u.AvailBytes = min(u.AvailBytes, uint64(max(0, f.space.limit-f.space.used())))
	}
	return u, nil
}

// Unwrap returns the file system below.
func (f *files) Unwrap() vfs.FS { return f.FS }

// A file counts what is written to it.
type file struct {
	vfs.File
	files     *files
	name      string
	essential bool
	size      int64
	sum       *sum // of a log or manifest
}

// do runs an operation, and reports success in its place if pebble cannot go on without.
func (f *file) do(op func() error) error {
	err := f.files.failure()
	if err == nil {
		if err = op(); err == nil {
			return nil
		}
		if f.essential {
			f.files.fail(err)
		}
	}
	if f.essential {
		return nil
	}
	return err
}

// Write appends p.
func (f *file) Write(p []byte) (n int, err error) {
	n = len(p)
	err = f.do(func() (err error) {
		if err = f.files.space.grow(f.name, f.size+int64(len(p))); err != nil {
			return f.files.note(err)
		}
		n, err = f.File.Write(p)
		f.size += int64(n)
		f.sum.write(p[:n])
		return f.files.note(err)
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// WriteAt writes p at an offset.
func (f *file) WriteAt(p []byte, at int64) (n int, err error) {
	n = len(p)
	err = f.do(func() (err error) {
		if err = f.files.space.grow(f.name, at+int64(len(p))); err != nil {
			return err
		}
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, err
}

// Sync makes the file durable.
func (f *file) Sync() error { return f.synced(f.File.Sync) }

// SyncData makes the file's bytes durable.
func (f *file) SyncData() error { return f.synced(f.File.SyncData) }

func (f *file) synced(sync func() error) error {
	return f.do(func() error {
		err := sync()
		if err == nil && f.sum != nil {
			f.files.ledger.synced(f.sum)
		}
		return err
	})
}

// SyncTo begins to write the first bytes of the file to the device.
func (f *file) SyncTo(n int64) (full bool, err error) {
	err = f.do(func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

// Preallocate does nothing, so that the file takes no more space than its bytes.
func (f *file) Preallocate(int64, int64) error { return nil }

// Close closes the file. If writing it has failed, that is known already.
func (f *file) Close() error {
	err := f.File.Close()
	if f.essential {
		return nil
	}
	return err
}

// nothing stands for a log that could not be created.
type nothing struct{}

func (nothing) Close() error                            { return nil }
func (nothing) Read([]byte) (int, error)                { return 0, io.EOF }
func (nothing) ReadAt([]byte, int64) (int, error)       { return 0, io.EOF }
func (nothing) Write(p []byte) (int, error)             { return len(p), nil }
func (nothing) WriteAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (nothing) Preallocate(int64, int64) error          { return nil }
func (nothing) Stat() (vfs.FileInfo, error)             { return nil, os.ErrNotExist }
func (nothing) Sync() error                             { return nil }
func (nothing) SyncTo(int64) (fullSync bool, err error) { return false, nil }
func (nothing) SyncData() error                         { return nil }
func (nothing) Prefetch(int64, int64) error             { return nil }
func (nothing) Fd() uintptr                             { return vfs.InvalidFd }

// isFull reports whether the error says that there is no space.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, errLimit) }
