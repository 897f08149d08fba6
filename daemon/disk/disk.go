package disk

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A Disk is an open data folder. Any number of goroutines may read; commits run one after the other.
type Disk struct {
	dir    string
	opts   Options
	fs     vfs.FS
	lock   io.Closer
	space  *space
	ledger *ledger
	log    *slog.Logger

	writing  sync.Mutex // held during commits and maintenance; guards writer and counters
	writer   *writer
	counters map[string]uint32

	mu      sync.RWMutex // guards what follows, and is never held during a read or write of the disk
	engine  *engine
	closed  bool
	damaged bool // an engine has met damage
	health  healthState

	wake chan struct{} // asks Run to look at the engine and at the space now
}

// ErrClosed is the error of a Disk that was closed.
var ErrClosed = errors.New("the data folder is closed")

// ErrInUse is the error of Open for a folder that is open already, most often in another process.
var ErrInUse = errors.New("it is in use by another process")

// Open opens the data folder, and makes it if it does not exist. One process at a time can open it.
func Open(dir string, o Options) (*Disk, error) {
	if o.MaxBytes != 0 && o.MaxBytes < MinMaxBytes && o.tune == nil {
		return nil, fmt.Errorf("open the data folder %s: a limit of %d bytes is too small; give at least %d", dir, o.MaxBytes,
			MinMaxBytes)
	}
	if o.Key != nil && len(o.Key) != 32 {
		return nil, fmt.Errorf("open the data folder %s: the key has %d bytes; give one of 32 bytes", dir, len(o.Key))
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	d := &Disk{dir: dir, opts: o, fs: o.FS, log: o.Logger, counters: map[string]uint32{}, wake: make(chan struct{}, 1)}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the data folder %s: %w", dir, err), d.unlock())
	}
	return d, nil
}

// open locks the folder and checks it before pebble changes anything.
func (d *Disk) open() (err error) {
	if err := d.checkOwn(); err != nil {
		return err
	}
	for _, dir := range []string{d.database(), d.fs.PathJoin(d.dir, recordsFolder)} {
		if err := makeFolder(d.fs, dir); err != nil {
			return fmt.Errorf("make the folder: %w", err)
		}
	}
	if d.lock, err = d.fs.Lock(d.fs.PathJoin(d.dir, "lock")); err != nil {
		return lockError(err)
	}
	if err := d.restrict(); err != nil {
		return err
	}
	if err := d.checkFormat(); err != nil {
		return err
	}
	d.ledger = newLedger(d.fs, d.fs.PathJoin(d.dir, "ledger"))
	if d.space, err = newSpace(d.fs, d.opts.MaxBytes, d.dir, d.database(),
		d.fs.PathJoin(d.dir, recordsFolder)); err != nil {
		return err
	}
	_ = d.space.grow(d.ledger.path, ledgerSize) // it is written past the limit; there is always room for it
	d.space.lift()
	if err = d.ledger.check(d.database()); err == nil {
		err = d.openEngine()
	}
	if err != nil && d.opts.Retry {
		err = fmt.Errorf("the data folder %s cannot be opened: %w", d.dir, err)
		d.log.Error("the data folder cannot be used; everything is kept in memory only", "error", err)
		d.health.setEngine(d.opts.now(), err)
		return nil
	}
	return err
}

// lockError returns the error for a folder that cannot be locked.
func lockError(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); ok || errors.Is(err, syscall.ENOLCK) {
		return fmt.Errorf("lock it: %w", err)
	}
	return fmt.Errorf("%w; stop that process, or give this one a folder of its own", ErrInUse)
}

// database is the folder with pebble's files.
func (d *Disk) database() string { return d.fs.PathJoin(d.dir, "db") }

// openEngine opens an engine, and a writer for it.
func (d *Disk) openEngine() error {
	if u, err := d.fs.GetDiskUsage(d.dir); err == nil && u.AvailBytes < openReserve {
		return fmt.Errorf("the file system has %d bytes left, and %d are needed to open it; free some space: %w",
			u.AvailBytes, openReserve, syscall.ENOSPC)
	}
	sizes := sizesFor(d.opts.MaxBytes)
	if d.opts.tune != nil {
		d.opts.tune(&sizes)
	}
	e, err := openEngine(d.database(), newFiles(d.fs, d.space, d.ledger), sizes, d.damaged,
		d.opts.Quiet, d.log)
	if err != nil {
		return err
	}
	d.writer = newWriter(d, e.db)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine = e
	return nil
}

// Close closes the folder. Reads that have begun end first; Run must have returned.
func (d *Disk) Close() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	e := d.engine
	d.engine = nil
	d.mu.Unlock()
	var err error
	if e != nil {
		err = e.close()
	}
	d.ledger.close()
	if err := errors.Join(err, d.unlock()); err != nil {
		return fmt.Errorf("close the data folder %s: %w", d.dir, err)
	}
	return nil
}

func (d *Disk) unlock() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// current returns the engine. The caller calls its end when it does not read any more.
func (d *Disk) current() (*engine, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.engine != nil {
		if err := d.engine.files.failure(); err != nil {
			d.awake()
			return nil, fmt.Errorf("the data folder %s has failed, and is opened again soon: %w", d.dir, err)
		}
	}
	switch {
	case d.closed:
		return nil, ErrClosed
	case d.engine == nil || !d.engine.begin():
		return nil, fmt.Errorf("the data folder %s cannot be read at the moment: %w", d.dir,
			d.health.engineError())
	}
	return d.engine, nil
}

// commit writes the changes and waits until they are durable.
func (d *Disk) commit(ops []op) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.health.begin(d.opts.now())
	room := d.room()
	err := room.err
	if err == nil {
		err = d.write(func(w *writer, out *pebble.Batch) error { return w.apply(out, ops, room.history) })
	}
	if err != nil {
		err = fmt.Errorf("write to the data folder %s: %w", d.dir, err)
	}
	d.health.end(d.opts.now(), err)
	return err
}

// write commits one batch of pebble. d.writing is held.
func (d *Disk) write(fill func(w *writer, out *pebble.Batch) error) (err error) {
	e, err := d.current()
	if err != nil {
		return err
	}
	defer e.end()
	defer func() {
		if err != nil {
			d.writer = newWriter(d, e.db)
		}
	}()
	defer recovered(&err, e.files)
	out := e.db.NewBatch()
	err = fill(d.writer, out)
	if err == nil {
		err = d.fits(int64(out.Len()))
	}
	if err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Commit(pebble.Sync); err != nil {
		e.files.fail(err)
	}
	if err := e.files.failure(); err != nil {
		d.awake()
		return err
	}
	return out.Close()
}

// awake asks Run to look at the engine and at the space now.
func (d *Disk) awake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}
