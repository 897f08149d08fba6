package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reserve is the free space of the file system that is left to others, and that pebble can use to finish what it
// has begun.
const reserve = 256 << 20

// openReserve is the free space without which no database is opened: pebble begins by writing what is in its log as
// tables, and does not return before it has succeeded.
const openReserve = 32 << 20

// errLimit is the error of a write above Options.MaxBytes.
var errLimit = errors.New("the data folder has reached its maximum size")

// space counts the bytes of all files, so that they stay below a limit.
type space struct {
	limit int64 // 0 means none
	dirs  []string

	mu    sync.Mutex
	sizes map[string]int64
	total int64
	most  int64 // the most that total was
}

// newSpace counts the files that are in the folders.
func newSpace(fs vfs.FS, limit int64, dirs ...string) (*space, error) {
	s := &space{limit: limit, dirs: dirs}
	return s, s.count(fs)
}

// count counts the files again.
func (s *space) count(fs vfs.FS) error {
	sizes, total := map[string]int64{}, int64(0)
	for _, dir := range s.dirs {
		names, err := fs.List(dir)
		if err != nil {
			return fmt.Errorf("list the folder %s: %w", dir, err)
		}
		for _, name := range names {
			name = fs.PathJoin(dir, name)
			info, err := fs.Stat(name)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("look at the file %s: %w", name, err)
			}
			if !info.IsDir() {
				sizes[name] = info.Size()
				total += info.Size()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes, s.total, s.most = sizes, total, max(s.most, total)
	return nil
}

// lift raises a limit that is below what is there already, so that the folder can be opened and then made smaller.
func (s *space) lift() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && s.total > s.limit {
		s.limit = s.total + max(s.limit/8, 8<<20)
	}
}

// grow records that a file is about to have the size. It refuses what would exceed the limit.
func (s *space) grow(name string, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := size - s.sizes[name]
	if more <= 0 {
		return nil
	}
	if s.limit > 0 && s.total+more > s.limit {
		return errLimit
	}
	s.sizes[name] = size
	s.total += more
	s.most = max(s.most, s.total)
	return nil
}

func (s *space) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= s.sizes[name]
	delete(s.sizes, name)
}

func (s *space) rename(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= s.sizes[to]
	s.sizes[to] = s.sizes[from]
	delete(s.sizes, from)
}

func (s *space) used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// peak returns the most bytes that there were.
func (s *space) peak() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}
