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

// Find returns what an environment variable names, or a program in bin/ in a folder above.
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

// maxOutput is how much of what a program says is kept, from its beginning on.
const maxOutput = 64 << 10

// Output is what a program has said. Any number of goroutines may use it.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write takes what the program says.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p[:min(len(p), maxOutput-o.text.Len())])
	return len(p), nil
}

// String gives the beginning of it.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
