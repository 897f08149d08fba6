package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"time"
)

// stamp identifies the content of a kubeconfig without reading it: by a version, or by what is known of a file.
type stamp struct {
	info    os.FileInfo
	version string // of a MemberList, or of several files
}

func stampOfFile(path string) (stamp, error) {
	info, err := os.Stat(path)
	return stamp{info: info}, err
}

// stampOfFiles identifies the content of several files together, by a hash of it.
func stampOfFiles(paths []string) (stamp, error) {
	sum := sha256.New()
	for _, path := range paths {
		if err := checkFile(path); err != nil {
			return stamp{}, fmt.Errorf("%s: %w", path, err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return stamp{}, err
		}
		fmt.Fprintf(sum, "%d\n%s", len(b), b)
	}
	return stamp{version: hex.EncodeToString(sum.Sum(nil))}, nil
}

func (s stamp) folder() bool { return s.info != nil && s.info.IsDir() }

// same reports whether two stamps have the same version, or the same file, size and time.
func (s stamp) same(o stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == o.info && s.version != "" && s.version == o.version
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}

// settled reports whether a later change would change the stamp. The time of a file that was written a moment ago may
// be the same after another write.
func (s stamp) settled(now time.Time) bool {
	const grain = 2 * time.Second // the coarsest resolution of file systems
	return s.info == nil || now.Sub(s.info.ModTime()) > grain
}
