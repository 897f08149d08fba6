package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/store"
)

// formatVersion is the version of the layout on disk. A change of keys, records or pebbleFormat needs another one, and
// an entry in upgrades.
const formatVersion = 1

// upgrades has, for each older version, what makes a folder of the next version out of it.
var upgrades = map[int]func(*Disk) error{}

// formatText is the content of the file "format".
const formatText = "mirador data %d packed %d\n"

// checkFormat reads the folder's format. It writes that of an empty folder, upgrades an older one and refuses others.
func (d *Disk) checkFormat() error {
	path := d.fs.PathJoin(d.dir, "format")
	text, err := readFile(d.fs, path)
	if errors.Is(err, os.ErrNotExist) {
		names, err := d.fs.List(d.database())
		if err != nil {
			return fmt.Errorf("list its files: %w", err)
		}
		if len(names) > 0 {
			return fmt.Errorf("it has data and no file %s; restore that file, or give another folder", path)
		}
		return d.writeFormat(formatVersion)
	}
	if err != nil {
		return fmt.Errorf("read its format: %w", err)
	}
	var version, packed int
	if n, err := fmt.Sscanf(text, formatText, &version, &packed); n != 2 || err != nil ||
		text != fmt.Sprintf(formatText, version, packed) {
		return fmt.Errorf("the file %s is not one that mirador has written; give another folder", path)
	}
	for version < formatVersion {
		upgrade := upgrades[version]
		if upgrade == nil {
			break
		}
		if err := upgrade(d); err != nil {
			return fmt.Errorf("upgrade its format %d: %w", version, err)
		}
		version++
		if err := d.writeFormat(version); err != nil {
			return err
		}
	}
	if version != formatVersion || packed != store.PackedFormat {
		return fmt.Errorf("it has the format %d with packed objects %d, and this mirador reads %d with %d; start the "+
			"mirador that wrote it, or give another folder", version, packed, formatVersion, store.PackedFormat)
	}
	return nil
}

// checkOwn returns an error for a folder that something else uses: it has files that are not of a data folder, and no
// format. Hidden files may be of the volume. Whether the folder can be read at all, the caller finds out.
func (d *Disk) checkOwn() error {
	names, err := d.fs.List(d.dir)
	if err != nil || slices.Contains(names, "format") {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case d.fs.PathBase(d.database()), recordsFolder, "lock", "ledger", "format.new", "lost+found":
			continue
		}
		if !strings.HasPrefix(name, ".") {
			return fmt.Errorf("it is not a data folder, and not empty: it has %q; give an empty or a new folder", name)
		}
	}
	return nil
}

// writeFormat writes the file "format" at once.
func (d *Disk) writeFormat(version int) error {
	path := d.fs.PathJoin(d.dir, "format")
	f, err := d.fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("write its format: %w", err)
	}
	if err = ownersOnly(f, path+".new"); err == nil {
		_, err = fmt.Fprintf(f, formatText, version, store.PackedFormat)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.fs.Rename(path+".new", path)
	}
	if err == nil {
		err = syncDir(d.fs, d.dir)
	}
	if err != nil {
		return fmt.Errorf("write its format: %w", err)
	}
	return nil
}

// makeFolder makes a folder and those that it is in, so that they are there after a crash.
func makeFolder(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeFolder(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fs, parent)
}

func syncDir(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func readFile(fs vfs.FS, path string) (string, error) {
	f, err := fs.Open(path)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	return string(b), errors.Join(err, f.Close())
}

// ownersOnly gives a file the mode 0600, unless it is in memory.
func ownersOnly(f vfs.File, name string) error {
	if f.Fd() == vfs.InvalidFd {
		return nil
	}
	return os.Chmod(name, 0o600)
}

// restrict takes all rights from others in a folder that existed before.
func (d *Disk) restrict() error {
	if d.fs != vfs.Default {
		return nil
	}
	lock := d.fs.PathJoin(d.dir, "lock")
	records := d.fs.PathJoin(d.dir, recordsFolder)
	for path, mode := range map[string]os.FileMode{d.dir: 0o700, d.database(): 0o700, records: 0o700, lock: 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("take the rights of others: %w", err)
		}
	}
	return nil
}
