package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAndFoldersArePrivate(t *testing.T) {
	registry := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "mirador-devcluster")
	seen := 0
	for _, root := range []string{shared.data(), registry} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			seen++
			switch {
			case d.IsDir() && info.Mode().Perm() != 0o700:
				t.Errorf("%s has mode %#o, want 0700", path, info.Mode().Perm())
			case info.Mode().IsRegular() && info.Mode().Perm() != 0o600:
				t.Errorf("%s has mode %#o, want 0600", path, info.Mode().Perm())
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) { // etcd replaces files while it runs
			t.Fatal(err)
		}
	}
	if seen < 20 {
		t.Errorf("checked only %d files", seen)
	}
}
