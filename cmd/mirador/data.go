package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mirador-k8s/mirador/daemon/disk"
)

// quietStart is how long the data folder is not compacted after the start. A compaction would take the time of a
// processor from what is read then, and from the first answers.
const quietStart = 5 * time.Second

// dataFlags are the flags of the data folder.
type dataFlags struct {
	folder   string
	keyFile  string
	maxBytes int64
	history  time.Duration
}

func (f *dataFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.folder, "data", "",
		"`folder` in which the mirror is kept: a restart then serves it at once and lists nothing (default: memory only)")
	flags.StringVar(&f.keyFile, "data-key", "",
		"`file` with 32 random bytes in base64: secrets that are mirrored are kept in the data folder, too, encrypted")
	flags.Int64Var(&f.maxBytes, "data-max-bytes", 10<<30,
		"`bytes` that the data folder may take; the oldest history is dropped to stay below")
	flags.DurationVar(&f.history, "data-history", 24*time.Hour,
		"how long earlier states of objects are kept in the data folder")
}

// check returns an error for flags that mean nothing without a data folder, or cannot be used.
func (f *dataFlags) check(flags *pflag.FlagSet) error {
	if f.folder == "" {
		for _, name := range []string{"data-key", "data-max-bytes", "data-history"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s is for a data folder, and there is none; name it with --data", name)
			}
		}
		return nil
	}
	if f.history <= 0 {
		return fmt.Errorf("--data-history is %s; give a time such as 24h", f.history)
	}
	return nil
}

// open opens the data folder. Without one it returns nil.
func (f *dataFlags) open(log *slog.Logger) (*disk.Disk, error) {
	if f.folder == "" {
		return nil, nil
	}
	if err := checkDataPath(f.folder); err != nil {
		return nil, err
	}
	o := disk.Options{HistoryAge: f.history, MaxBytes: f.maxBytes, Logger: log, Retry: true, Quiet: quietStart}
	if f.keyFile != "" {
		var err error
		if o.Key, err = readDataKey(f.keyFile); err != nil {
			return nil, err
		}
	}
	d, err := disk.Open(f.folder, o)
	if err != nil {
		return nil, err
	}
	if err := d.CheckKey(); err != nil {
		return nil, errors.Join(fmt.Errorf("--data-key: %w, with mirador data drop", err), d.Close())
	}
	return d, nil
}

// checkDataPath returns an error if the data folder is a file, or in a folder that does not exist: that may be a volume
// that is not mounted.
func checkDataPath(folder string) error {
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return fmt.Errorf("--data %s: it is a file, not a folder; name another folder", folder)
	}
	parent := filepath.Dir(filepath.Clean(folder))
	if info, err := os.Stat(parent); errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir() {
		return fmt.Errorf("--data %s: there is no folder %s; make it, or name another folder", folder, parent)
	}
	return nil
}

// readDataKey reads the key of the data folder.
func readDataKey(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key of the data folder: %w; --data-key names it", plainFileError(err))
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err == nil && len(key) != 32 {
		err = errors.New("wrong length")
	}
	if err != nil {
		return nil, fmt.Errorf("the key of the data folder in %s is not 32 bytes in base64; make one with \"head -c 32 "+
			"/dev/urandom | base64\"", file)
	}
	return key, nil
}
