package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
)

// file is a file whose content is used again when it changes. It is opened by its name each time, because a Kubernetes
// Secret is replaced by changing a symbolic link.
type file struct {
	what, path string
	use        func(context.Context, []byte) error // keeps what was used before if it returns an error

	used        [sha256.Size]byte // the hash of the content in use
	lastFailure string
}

// follow adds a file unless its path is empty.
func (a *Authenticator) follow(what, path string, use func(context.Context, []byte) error) {
	if path != "" {
		a.files = append(a.files, &file{what: what, path: path, use: use})
	}
}

// read reads the file, uses its content if that is new, and reports whether it was new.
func (f *file) read(ctx context.Context) (bool, error) {
	content, err := os.ReadFile(f.path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return false, fmt.Errorf("read the %s of %s: %w", f.what, f.path, err)
	}
	sum := sha256.Sum256(content)
	if sum == f.used {
		return false, nil
	}
	if err := f.use(ctx, content); err != nil {
		return false, fmt.Errorf("use the %s of %s: %w", f.what, f.path, err)
	}
	f.used = sum
	return true, nil
}

// check reads the file and logs the result. A failure is logged once.
func (f *file) check(ctx context.Context, log *slog.Logger) {
	changed, err := f.read(ctx)
	if err == nil {
		f.lastFailure = ""
		if changed {
			log.Info("a file changed, and its new content is in use", "content", f.what, "file", f.path)
		}
		return
	}
	if ctx.Err() == nil && err.Error() != f.lastFailure {
		f.lastFailure = err.Error()
		log.Error("a file cannot be used; what was read before stays in use", "error", err)
	}
}
