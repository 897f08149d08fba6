// Package program finds the programs that a measurement runs beside itself, and keeps what they say.
//
//	path, err := program.Find("DEVCLUSTER", "devcluster")
package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Find returns the path in an environment variable, or a program in bin/ of a parent folder.
func Find(variable, name string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", name, err)
	}
	for {
		path := filepath.Join(dir, "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for %s: %w", name, err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("there is no bin/%s above this folder: run `make bin/%s`, or set %s to its path",
				name, name, variable)
		}
		dir = filepath.Dir(dir)
	}
}

// maxOutput is how much of a program's output is kept, from its beginning.
const maxOutput = 64 << 10

// Output is the output of a program. It may be used by any number of goroutines.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write records output of the program.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p[:min(len(p), maxOutput-o.text.Len())])
	return len(p), nil
}

// String returns the recorded output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
