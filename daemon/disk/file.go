package disk

import (
	"io"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file counts what is written to it.
type file struct {
	vfs.File
	files     *files
	name      string
	essential bool
	size      int64
	sum       *sum // of a log or manifest
}

// do runs an operation. Without it, after a failure or if pebble cannot go on, it reports success.
func (f *file) do(op func() error) error {
	if !f.files.begin() {
		return nil
	}
	defer f.files.end()
	err := op()
	if err != nil && f.essential {
		f.files.fail(err)
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
		then := f.sum.after(p)
		if n, err = f.File.Write(p); err == nil {
			f.sum.set(then)
		}
		f.size += int64(n)
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

// Stat returns what is known of the file. Pebble asks when it takes an old log for a new one.
func (f *file) Stat() (info vfs.FileInfo, err error) {
	err = f.do(func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	if info == nil && err == nil {
		info = noInfo{f.files.FS.PathBase(f.name)}
	}
	return info, err
}

// noInfo is the information about a file of which nothing is known.
type noInfo struct{ name string }

func (n noInfo) Name() string         { return n.name }
func (noInfo) Size() int64            { return 0 }
func (noInfo) Mode() os.FileMode      { return 0o600 }
func (noInfo) ModTime() time.Time     { return time.Time{} }
func (noInfo) IsDir() bool            { return false }
func (noInfo) Sys() any               { return nil }
func (noInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

// Preallocate does nothing, so that the file takes no more space than its bytes.
func (f *file) Preallocate(int64, int64) error { return nil }

// Close closes the file. If writing it has failed, that is known already.
func (f *file) Close() error {
	err := f.File.Close()
	if f.essential || f.files.failure() != nil {
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
