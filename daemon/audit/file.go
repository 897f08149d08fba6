package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// megabyte is the unit of Options.MaxSize, and defaultSize its default.
const megabyte, defaultSize = 1 << 20, 100

// rotated is when a file was rotated, in the name of the file, in UTC. kube-apiserver uses the same.
const rotated = "2006-01-02T15-04-05.000"

// file is a file that is rotated. When it would become too large, it gets the time into its name, and a new one takes
// its place. Then files that are too old or too many are removed. Only one goroutine may use it.
type file struct {
	path       string
	maxSize    int64
	maxAge     time.Duration // 0: any
	maxBackups int           // 0: any
	log        *slog.Logger

	f    *os.File // nil if it could not be opened or rotated
	size int64
	mode fs.FileMode // of the last file, which an administrator may have changed
}

func openFile(o *Options, log *slog.Logger) (*file, error) {
	f := &file{path: o.Path, maxSize: int64(o.MaxSize) * megabyte, maxAge: time.Duration(o.MaxAge) * 24 * time.Hour,
		maxBackups: o.MaxBackups, log: log, mode: 0o600}
	if f.maxSize == 0 {
		f.maxSize = defaultSize * megabyte
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	f.removeOld()
	return f, nil
}

func (f *file) open() error {
	opened, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, f.mode)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	f.f, f.size, f.mode = opened, info.Size(), info.Mode().Perm()
	return nil
}

// Write appends to the file, which it rotates before if necessary. What is written at once stays in one file.
func (f *file) Write(b []byte) (int, error) {
	if f.f == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.size > 0 && f.size+int64(len(b)) > f.maxSize {
		if err := f.rotate(); err != nil {
			return 0, fmt.Errorf("rotate the audit log: %w", err)
		}
	}
	n, err := f.f.Write(b)
	f.size += int64(n)
	return n, err
}

func (f *file) rotate() error {
	if err := f.Close(); err != nil {
		return err
	}
	if err := f.rename(); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have been moved or removed
		return err
	}
	f.removeOld()
	return f.open()
}

// rename gives the file a name of its own.
func (f *file) rename() error {
	prefix, ext := f.parts()
	for at := time.Now().UTC(); ; at = at.Add(time.Millisecond) {
		name := prefix + at.Format(rotated) + ext
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(f.path, name)
		} else if err != nil {
			return err
		}
	}
}

// parts returns what stands before and after the time in the names of rotated files.
func (f *file) parts() (prefix, ext string) {
	ext = filepath.Ext(f.path)
	return strings.TrimSuffix(f.path, ext) + "-", ext
}

// removeOld removes rotated files that are too old or too many.
func (f *file) removeOld() {
	dir := filepath.Dir(f.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.log.Warn("old files of the audit log cannot be removed", "error", err)
		return
	}
	prefix, ext := f.parts()
	var times []time.Time // the names of the rotated files, the newest first
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(prefix))
		if at, err := time.Parse(rotated, strings.TrimSuffix(rest, ext)); ours && err == nil && strings.HasSuffix(rest, ext) {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	for i, at := range times {
		if f.maxBackups > 0 && i >= f.maxBackups || f.maxAge > 0 && time.Since(at) > f.maxAge {
			if err := os.Remove(prefix + at.Format(rotated) + ext); err != nil {
				f.log.Warn("an old file of the audit log cannot be removed", "error", err)
			}
		}
	}
}

// Close closes the file. A Write after that opens it again.
func (f *file) Close() error {
	opened := f.f
	if f.f = nil; opened == nil {
		return nil
	}
	return opened.Close()
}
