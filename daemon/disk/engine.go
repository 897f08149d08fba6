package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// engineSizes are what pebble keeps in memory, and the sizes that follow from that.
type engineSizes struct {
	cache, memtable, table, base, manifest int64
	block                                  int
	compression                            *sstable.CompressionProfile
}

// sizesFor returns the sizes for a limit of bytes on disk. A compaction writes new tables before it removes the old
// ones, and what it takes at most follows from these sizes: for the largest one there must be room in a folder that is
// full.
func sizesFor(limit int64) engineSizes {
	s := engineSizes{cache: 8 << 20, memtable: 12 << 20, table: 8 << 20, base: 64 << 20, manifest: 1 << 20,
		block: 32 << 10, compression: sstable.BalancedCompression}
	if limit > 0 {
		s.memtable = min(s.memtable, limit/128)
		s.table = min(s.table, limit/512)
		s.base = min(s.base, limit/32)
		s.manifest = min(s.manifest, limit/64)
	}
	return s
}

// engine is one opened pebble database. If writing fails in a way that leaves open what is on disk, it is replaced by
// another one; reads that have begun go on.
type engine struct {
	db      *pebble.DB
	files   *files
	options *pebble.Options
	// compacting ends the quiet time after the opening; nil if there is none.
	compacting *time.Timer

	mu      sync.Mutex
	readers int
	done    chan struct{} // closed when the engine is retired and has no readers
	retired bool

	damage atomic.Pointer[string] // the last damaged file
	last   atomic.Pointer[error]  // the last background error
}

// openEngine opens the database in dir, which compacts nothing for the time of quiet. A damaged one is read and
// written, and never compacted.
func openEngine(dir string, f *files, sizes engineSizes, damaged bool, quiet time.Duration,
	log *slog.Logger) (e *engine, err error) {
	e = &engine{files: f, done: make(chan struct{})}
	cache := pebble.NewCache(sizes.cache)
	defer cache.Unref()
	o := &pebble.Options{
		FS:                          f,
		Cache:                       cache,
		FormatMajorVersion:          pebbleFormat,
		MemTableSize:                uint64(sizes.memtable),
		MemTableStopWritesThreshold: 2,
		MaxOpenFiles:                256,
		LBaseMaxBytes:               sizes.base,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       24,
		MaxManifestFileSize:         sizes.manifest,
		FlushDelayDeleteRange:       time.Second,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
		Logger:                      engineLogger{f, log},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { e.last.Store(&err) },
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				if f.failure() != nil {
					return // it misses what was not written
				}
				e.damage.Store(&i.Path)
				log.Error("a file of the data folder is damaged", "file", i.Path, "error", firstLine(i.Details))
			},
		},
	}
	if damaged {
		// Pebble repeats a compaction that meets damage at once and forever.
		o.DisableAutomaticCompactions, o.L0StopWritesThreshold = true, 1<<20
	}
	o.Experimental.FileCacheShards = 1
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = sizes.table
	}
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{
			BlockSize:      sizes.block,
			IndexBlockSize: sizes.block,
			Compression:    func() *sstable.CompressionProfile { return sizes.compression },
		}
		if i == 0 {
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
		}
	}
	compactions := newCompactions(quiet == 0)
	o.Experimental.CompactionScheduler = compactions
	e.options = o
	defer recovered(&err, f)
	if e.db, err = pebble.Open(dir, o); err != nil {
		if pebble.IsCorruptionError(err) {
			err = &DamageError{What: "the database " + dir, Err: err}
		}
		return nil, err
	}
	if err := f.failure(); err != nil {
		return nil, errors.Join(err, e.db.Close())
	}
	if quiet > 0 {
		e.compacting = time.AfterFunc(quiet, compactions.begin)
	}
	return e, nil
}

// pebbleFormat is the format of pebble's files. A newer one cannot be read by an older pebble, so it changes only
// together with formatVersion.
const pebbleFormat = pebble.FormatTableFormatV6

// recovered turns a panic of pebble into an error.
func recovered(err *error, f *files) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("pebble panicked: %v", r)
		f.fail(*err)
	}
}

// begin registers a reader. It returns false if the engine is closed.
func (e *engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.retired {
		return false
	}
	e.readers++
	return true
}

// end unregisters a reader.
func (e *engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.readers--; e.readers == 0 && e.retired {
		close(e.done)
	}
}

// flush writes what is in memory to tables. Pebble repeats a flush that fails, so this ends with the engine.
func (e *engine) flush(ctx context.Context) error {
	if err := e.files.failure(); err != nil {
		return err
	}
	flushed, err := e.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
		return nil
	case <-e.files.stopped:
		return e.files.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compact compacts a range of keys. It ends with the engine, like flush.
func (e *engine) compact(ctx context.Context, from, to []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.db.Compact(ctx, from, to, false) }()
	select {
	case err := <-done:
		return err
	case <-e.files.stopped:
		cancel()
		<-done
		return e.files.failure()
	}
}

// close waits for readers and closes the database.
func (e *engine) close() (err error) {
	e.mu.Lock()
	if e.retired {
		e.mu.Unlock()
		<-e.done
		return nil
	}
	e.retired = true
	if e.readers == 0 {
		close(e.done)
	}
	e.mu.Unlock()
	<-e.done
	if e.compacting != nil {
		e.compacting.Stop()
	}
	defer recovered(&err, e.files)
	if err = e.db.Close(); err == nil {
		err = e.files.failure()
	}
	return err
}

// engineLogger receives pebble's messages. Pebble calls Fatalf when it cannot go on; the changes on disk stop there,
// and the engine is replaced.
type engineLogger struct {
	files *files
	log   *slog.Logger
}

// Infof drops a message: pebble reports each flush and compaction.
func (l engineLogger) Infof(string, ...any) {}

// Errorf logs an error.
func (l engineLogger) Errorf(format string, args ...any) {
	l.log.Warn("data folder: " + fmt.Sprintf(format, args...))
}

// Fatalf stops all changes on disk.
func (l engineLogger) Fatalf(format string, args ...any) { l.files.fail(fmt.Errorf(format, args...)) }
