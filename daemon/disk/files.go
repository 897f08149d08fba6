package disk

import (
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files is the file system that an engine writes to. Beside the one below it, it does four things:
//
//   - Files get mode 0600.
//   - It counts the bytes of all files and refuses those above the limit.
//   - The first failure that leaves it open what is on disk stops it: nothing is changed on disk after that, so that
//     the next engine finds what was there at that moment. Pebble ends the process when such an operation fails, and
//     keeps writers waiting until it has written a table, so all operations seem to succeed from then on. Whoever wants
//     to know what became of a write asks failure.
//   - It keeps the sums of logs and manifests in the ledger.
type files struct {
	vfs.FS
	space  *space
	ledger *ledger

	stop    atomic.Pointer[error]
	stopped chan struct{}
	once    sync.Once
	misses  atomic.Int32 // writes of tables that failed in succession

	mu      sync.Mutex
	changes int           // operations that change something and have not ended
	ended   chan struct{} // closed when there are none; made by awaitChanges
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

// begin registers an operation that changes something. It returns false if there must be none any more.
func (f *files) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure() != nil {
		return false
	}
	f.changes++
	return true
}

// end is called when an operation that begin has permitted has ended.
func (f *files) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes--
	if f.changes == 0 && f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
}

// awaitChanges waits, after fail, until no operation changes anything any more.
func (f *files) awaitChanges() {
	f.mu.Lock()
	if f.changes > 0 && f.ended == nil {
		f.ended = make(chan struct{})
	}
	ended := f.ended
	f.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// essential reports whether pebble cannot go on if a write to the file fails. It repeats a flush at once and for ever
// if the manifest cannot be written, and commits wait for that flush.
func essential(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.")
}

// pause delays a background operation that follows failed ones, because pebble repeats those at once.
func (f *files) pause() {
	n := f.misses.Load()
	if n == 0 || f.failure() != nil {
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
	if !f.begin() {
		return f.instead(name), nil
	}
	defer f.end()
	if strings.HasPrefix(f.FS.PathBase(name), "marker.") {
		// A marker names another file. After a crash, it must not be there without that.
		if err := syncDir(f.FS, f.FS.PathDir(name)); err != nil {
			f.fail(err)
			return f.instead(name), nil
		}
	}
	f.space.forget(name)
	below, err := f.FS.Create(name, category)
	return f.wrap(name, below, err)
}

// OpenReadWrite opens or creates a file of mode 0600.
func (f *files) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if !f.begin() {
		return f.instead(name), nil
	}
	defer f.end()
	below, err := f.FS.OpenReadWrite(name, category, o...)
	return f.wrap(name, below, err)
}

// ReuseForWrite renames a log and opens it.
func (f *files) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !f.begin() {
		return f.instead(to), nil
	}
	defer f.end()
	below, err := f.FS.ReuseForWrite(from, to, category)
	if err == nil {
		f.space.rename(from, to)
		f.ledger.forget(from)
	}
	return f.wrap(to, below, err)
}

// wrap returns the file that pebble gets.
func (f *files) wrap(name string, below vfs.File, err error) (vfs.File, error) {
	if err == nil {
		if err = ownersOnly(below, name); err != nil {
			below.Close()
		}
	}
	f.note(err)
	switch {
	case err == nil:
		return &file{File: below, files: f, name: name, essential: essential(name), sum: f.ledger.begin(name)}, nil
	case essential(name):
		f.fail(err)
		return f.instead(name), nil
	}
	return nil, err
}

// instead returns a file without bytes for one that is not on disk.
func (f *files) instead(name string) vfs.File {
	return &file{File: nothing{}, files: f, name: name, essential: essential(name)}
}

// Open opens a file to read it. After a failure that is refused: tables that seemed to be written are not there, and the
// next engine may write others under their names. Pebble repeats at once what fails, so the refusal takes a while.
func (f *files) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	below, err := f.FS.Open(name, o...)
	if failure := f.failure(); failure != nil {
		if err == nil {
			_ = below.Close()
		}
		time.Sleep(unreadable)
		return nil, failure
	}
	return below, err
}

// unreadable is how long it takes to refuse to open a file.
const unreadable = 20 * time.Millisecond

// change runs an operation that changes the folder.
func (f *files) change(do func() error) error {
	if !f.begin() {
		return nil
	}
	defer f.end()
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
