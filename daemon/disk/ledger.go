package disk

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The ledger has the length and the sum of what was synced of each log and manifest. Pebble takes a damaged end of
// these files for a write that a crash has cut off, and goes on with an older state or, worse, without some of the
// changes. With the ledger, what was acknowledged and is not there any more is damage.
//
// The ledger's own file is written after each sync and never synced itself. What a crash leaves of it is a lower bound,
// because a log only grows; a ledger that cannot be read says nothing.
type ledger struct {
	fs   vfs.FS
	path string

	mu   sync.Mutex
	file vfs.File
	sums map[string]*sum
	line []byte
}

// sum is what was written to a file, and what was synced.
type sum struct {
	name    string
	mu      sync.Mutex
	written mark
	synced  mark
}

type mark struct {
	length int64
	crc    uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ledgerSize is the size of the ledger's file, so that each write replaces all of it.
const ledgerSize = 4096

func newLedger(fs vfs.FS, path string) *ledger {
	return &ledger{fs: fs, path: path, sums: map[string]*sum{}}
}

// listed reports whether the ledger has the file.
func listed(base string) bool {
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-")
}

// begin returns the sum of a file that is written from its beginning, or nil if the ledger does not have it.
func (l *ledger) begin(name string) *sum {
	base := l.fs.PathBase(name)
	if !listed(base) {
		return nil
	}
	s := &sum{name: base}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sums[base] = s
	return s
}

// after returns what is written once p is. It comes before the write, which may change p.
func (s *sum) after(p []byte) mark {
	if s == nil {
		return mark{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return mark{s.written.length + int64(len(p)), crc32.Update(s.written.crc, castagnoli, p)}
}

// set records what is written.
func (s *sum) set(m mark) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = m
}

// synced records that what was written to the file is durable, and writes the ledger. Its errors are ignored: an older
// ledger is true as well.
func (l *ledger) synced(s *sum) {
	s.mu.Lock()
	s.synced = s.written
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = l.line[:0]
	for base, s := range l.sums {
		s.mu.Lock()
		synced := s.synced
		s.mu.Unlock()
		if synced.length > 0 && len(l.line) < ledgerSize-200 {
			l.line = fmt.Appendf(l.line, "%s %d %08x\n", base, synced.length, synced.crc)
		}
	}
	l.line = fmt.Appendf(l.line, "sum %08x\n", crc32.Checksum(l.line, castagnoli))
	for len(l.line) < ledgerSize {
		l.line = append(l.line, ' ')
	}
	if l.file == nil {
		f, err := l.fs.OpenReadWrite(l.path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return
		}
		if err := ownersOnly(f, l.path); err != nil {
			_ = f.Close()
			return
		}
		l.file = f
	}
	_, _ = l.file.WriteAt(l.line[:ledgerSize], 0)
}

// forget removes a file that does not exist any more.
func (l *ledger) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sums, l.fs.PathBase(name))
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// check compares the files in dir with the ledger.
func (l *ledger) check(dir string) error {
	for base, want := range l.read() {
		name := l.fs.PathJoin(dir, base)
		f, err := l.fs.Open(name)
		if err != nil {
			continue // it was removed after the ledger was written
		}
		crc := crc32.New(castagnoli)
		n, err := io.Copy(crc, io.LimitReader(f, want.length))
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if n != want.length || crc.Sum32() != want.crc {
			return &DamageError{What: "the file " + name, Err: fmt.Errorf("its first %d bytes are not those that were "+
				"written", want.length)}
		}
	}
	return nil
}

// read returns the ledger on disk, or nothing.
func (l *ledger) read() map[string]mark {
	f, err := l.fs.Open(l.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, ledgerSize))
	if err != nil {
		return nil
	}
	end := bytes.LastIndex(b, []byte("sum "))
	if end < 0 {
		return nil
	}
	var crc uint32
	if _, err := fmt.Sscanf(string(b[end:]), "sum %08x\n", &crc); err != nil || crc != crc32.Checksum(b[:end], castagnoli) {
		return nil
	}
	marks := map[string]mark{}
	for line := range strings.Lines(string(b[:end])) {
		var base string
		var m mark
		if _, err := fmt.Sscanf(line, "%s %d %08x", &base, &m.length, &m.crc); err != nil || !listed(base) {
			return nil
		}
		marks[base] = m
	}
	return marks
}
