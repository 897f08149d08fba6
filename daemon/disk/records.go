package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Records are small files beside the database, for notes that are worth the most right before the process is killed.
// Records are handed to the operating system as soon as they come, and nothing waits for the device: they survive the
// end of the process, and not always that of the machine. Whoever reads them gets those before the first that is
// missing or damaged.
//
// One goroutine writes. No call but Close waits for it: if the folder hangs or is full, a file fails, and no more
// is written to it.
type Records struct {
	disk *Disk

	mu      sync.Mutex
	waiting []recordWrite
	bytes   int // of the waiting records
	closed  bool
	wake    chan struct{} // has a buffer of one
	done    chan struct{} // closed when the goroutine has ended
}

// RecordFile is a file that records are appended to.
type RecordFile struct {
	of     *Records
	name   string
	failed bool // guarded by of.mu

	// The writing goroutine uses the following fields.
	file vfs.File
	size int64
}

// recordWrite is something to do for the writing goroutine.
type recordWrite struct {
	file   *RecordFile
	data   []byte // nil to close the file
	remove string // the name of a file to remove
}

const (
	recordsFolder = "records"
	// maxRecordsWaiting bounds the memory for records that wait for a slow folder.
	maxRecordsWaiting = 8 << 20
	// maxRecord is the size of the largest record.
	maxRecord = 1 << 20
	// recordsEnd is how long Close waits for what is still to be written.
	recordsEnd = 2 * time.Second
)

var errRecordFile = errors.New("it is larger than any file of records")

// maxRecordFile is the size of the largest file that is read.
const maxRecordFile = 64 << 20

func (d *Disk) recordsPath(name string) string { return d.fs.PathJoin(d.dir, recordsFolder, name) }

// OpenRecords begins to write records. The caller closes them before the Disk.
func (d *Disk) OpenRecords() *Records {
	r := &Records{disk: d, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r
}

// RecordFiles returns the names of the files with records, in order.
func (d *Disk) RecordFiles() ([]string, error) {
	names, err := d.fs.List(d.fs.PathJoin(d.dir, recordsFolder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// ReadRecords returns the records of a file, up to the first that is incomplete or damaged.
func (d *Disk) ReadRecords(name string) ([][]byte, error) {
	f, err := d.fs.Open(d.recordsPath(name))
	if err != nil {
		return nil, fmt.Errorf("read the records %s: %w", name, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRecordFile+1))
	if err == nil && len(b) > maxRecordFile {
		err = errRecordFile
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the records %s: %w", name, err)
	}
	return parseRecords(b), nil
}

var recordSums = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends a record with its length and its sum.
func appendRecord(b, record []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = binary.LittleEndian.AppendUint32(b, recordSum(record))
	return append(b, record...)
}

// recordSum returns the sum of a record and its length, which is not 0 for an empty record: a file may end in zeros
// after a crash of the machine.
func recordSum(record []byte) uint32 {
	length := binary.LittleEndian.AppendUint32(nil, ^uint32(len(record)))
	return crc32.Update(crc32.Checksum(length, recordSums), recordSums, record)
}

func parseRecords(b []byte) (all [][]byte) {
	for len(b) >= 8 {
		n, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if b = b[8:]; n > maxRecord || uint64(n) > uint64(len(b)) || recordSum(b[:n]) != sum {
			return all
		}
		all, b = append(all, b[:n]), b[n:]
	}
	return all
}

// Create makes a file with some records, or replaces it.
func (r *Records) Create(name string, records [][]byte) *RecordFile {
	f := &RecordFile{of: r, name: name}
	data := []byte{}
	for _, record := range records {
		data = appendRecord(data, record)
	}
	r.add(recordWrite{file: f, data: data})
	return f
}

// Append adds a record.
func (f *RecordFile) Append(record []byte) {
	f.of.add(recordWrite{file: f, data: appendRecord(nil, record)})
}

// Failed reports whether the file does not have all records, because the folder was full, slow or broken. It will get
// no more.
func (f *RecordFile) Failed() bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.failed
}

// Close closes the file when its records are written.
func (f *RecordFile) Close() { f.of.add(recordWrite{file: f}) }

// Remove removes a file when everything before is written.
func (r *Records) Remove(name string) { r.add(recordWrite{remove: name}) }

func (r *Records) add(w recordWrite) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.data != nil {
		if w.file.failed || r.closed || r.bytes+len(w.data) > maxRecordsWaiting {
			w.file.failed = true
			return
		}
	}
	if r.closed {
		return
	}
	r.waiting = append(r.waiting, w)
	r.bytes += len(w.data)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Close writes what waits, and ends the goroutine. It gives up after some seconds if the folder hangs.
func (r *Records) Close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	r.mu.Unlock()
	close(r.wake)
	timeout := time.NewTimer(recordsEnd)
	defer timeout.Stop()
	select {
	case <-r.done:
	case <-timeout.C:
	}
}

// run writes until Close.
func (r *Records) run() {
	defer close(r.done)
	open := map[*RecordFile]bool{}
	defer func() {
		for f := range open {
			_ = f.file.Close()
		}
	}()
	for {
		_, more := <-r.wake
		r.mu.Lock()
		waiting := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		for len(waiting) > 0 {
			n := r.write(waiting)
			if f := waiting[0].file; f != nil {
				if f.file != nil {
					open[f] = true
				} else {
					delete(open, f)
				}
			}
			waiting = waiting[n:]
		}
		if !more {
			return
		}
	}
}

// write does the first of what waits, together with what follows for the same file, and returns how many that were.
func (r *Records) write(waiting []recordWrite) int {
	first := waiting[0]
	switch {
	case first.remove != "":
		path := r.disk.recordsPath(first.remove)
		if err := r.disk.fs.Remove(path); err == nil || errors.Is(err, os.ErrNotExist) {
			r.disk.space.forget(path)
		}
		return 1
	case first.data == nil:
		if first.file.file != nil {
			_ = first.file.file.Close()
			first.file.file = nil
		}
		return 1
	}
	n, data := 1, first.data
	for ; n < len(waiting) && waiting[n].file == first.file && waiting[n].data != nil; n++ {
		data = append(data, waiting[n].data...)
	}
	err := first.file.write(data)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes -= len(data)
	if err != nil && !first.file.failed {
		first.file.failed = true
		r.disk.log.Warn("the data folder: notes for watches over a restart are not written", "file", first.file.name,
			"error", err)
	}
	return n
}

// write appends to the file, and creates it the first time.
func (f *RecordFile) write(b []byte) (err error) {
	if f.of.hasFailed(f) {
		return nil
	}
	d, path := f.of.disk, f.of.disk.recordsPath(f.name)
	if f.file == nil {
		if err := makeFolder(d.fs, d.fs.PathDir(path)); err != nil {
			return err
		}
		d.space.forget(path)
		file, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		f.file = file
		if err := ownersOnly(file, path); err != nil {
			return err
		}
	}
	if err := d.space.grow(path, f.size+int64(len(b))); err != nil {
		return err
	}
	n, err := f.file.Write(b)
	f.size += int64(n)
	return err
}

func (r *Records) hasFailed(f *RecordFile) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f.failed
}

// dropRecords removes all files with records.
func (d *Disk) dropRecords() error {
	names, err := d.RecordFiles()
	for _, name := range names {
		err = errors.Join(err, d.fs.Remove(d.recordsPath(name)))
	}
	return err
}
