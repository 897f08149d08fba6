package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	defaultPoll = 5 * time.Second
	// leaveTimeout is how long the folder waits for a cluster that leaves.
	leaveTimeout = 10 * time.Second
)

// WatchFolder follows a folder of kubeconfigs until ctx ends: a file that is added,
// changed or removed is a cluster joining, joining anew or leaving. The cluster's name
// is the file's without its extension, as a DNS label; a file with several contexts is a
// cluster for each, named name-context. Files are the operator's own: plugins and paths
// are allowed. Hidden files are left out.
//
// A file or folder that cannot be read is reported and changes nothing: what it was
// before stays. The folder is looked at every so often (0: 5 seconds) and at once when
// the call begins; that it cannot be read then is the one error.
func (f *Fleet) WatchFolder(ctx context.Context, dir string, every time.Duration) error {
	if every <= 0 {
		every = defaultPoll
	}
	w := &folder{f: f, dir: dir, files: map[string]*folderFile{}}
	if err := w.look(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := w.look(ctx)
		said = w.report(said, err)
	}
}

// folder is what is known of a folder.
type folder struct {
	f     *Fleet
	dir   string
	files map[string]*folderFile
}

// folderFile is what came of a file.
type folderFile struct {
	said     string // the last failure that was reported
	clusters map[string]folderCluster
}

type folderCluster struct {
	text string // of its context
	c    *Cluster
}

// report logs a failure once for as long as it is the same.
func (w *folder) report(said string, err error) string {
	if err == nil {
		return ""
	}
	if text := err.Error(); text != said {
		said = text
		w.f.log.Warn("fleet: the folder of kubeconfigs", "folder", w.dir, "error", said)
	}
	return said
}

// look compares the folder with what is known of it.
func (w *folder) look(ctx context.Context) error {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return fmt.Errorf("read the folder of kubeconfigs; its clusters stay as they are: %w", err)
	}
	present := map[string]bool{}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !e.IsDir() {
			present[name] = true
		}
	}
	// Who goes makes room for who comes: a file may have been renamed.
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		if !present[name] {
			w.report("", w.settle(ctx, w.files[name], nil, name))
			delete(w.files, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if ctx.Err() != nil {
			return nil
		}
		file := w.files[name]
		if file == nil {
			file = &folderFile{clusters: map[string]folderCluster{}}
			w.files[name] = file
		}
		err := w.follow(ctx, file, name)
		file.said = w.report(file.said, err)
	}
	return nil
}

// follow brings the clusters of a file in line with it.
func (w *folder) follow(ctx context.Context, file *folderFile, name string) error {
	path := filepath.Join(w.dir, name)
	if info, err := os.Stat(path); err == nil && info.IsDir() { // a link to a folder
		return nil
	}
	contexts, err := readContexts(path, nil)
	if err != nil {
		return fmt.Errorf("read %s; what it was before stays: %w", name, err)
	}
	want := map[string]found{}
	for _, c := range contexts {
		cluster := dnsLabel(strings.TrimSuffix(name, filepath.Ext(name)))
		if len(contexts) > 1 {
			cluster = dnsLabel(cluster + "-" + c.context)
		}
		if other, taken := want[cluster]; taken {
			return fmt.Errorf("read %s; what it was before stays: the contexts %q and %q would both be the cluster %q; rename one", name, other.context, c.context, cluster)
		}
		want[cluster] = c
	}
	return w.settle(ctx, file, want, name)
}

// settle has the clusters of a file leave that are gone or changed, and join that are
// new or changed.
func (w *folder) settle(ctx context.Context, file *folderFile, want map[string]found, name string) error {
	var failed []error
	for cluster, have := range file.clusters {
		if c, ok := want[cluster]; ok && c.text == have.text {
			continue
		}
		delete(file.clusters, cluster)
		wait, cancel := context.WithTimeout(ctx, leaveTimeout)
		// One that somebody else had leave, and perhaps joined anew, is no business of the file.
		if err := w.f.remove(wait, have.c); err != nil && !errors.Is(err, ErrUnknown) {
			failed = append(failed, err)
		}
		cancel()
	}
	for _, cluster := range slices.Sorted(maps.Keys(want)) {
		if _, have := file.clusters[cluster]; have {
			continue
		}
		c, err := w.f.join(cluster, want[cluster].cfg, Origin{FromFolder, filepath.Join(w.dir, name)}, nil)
		if err != nil {
			failed = append(failed, err) // and tried again at the next look
			continue
		}
		file.clusters[cluster] = folderCluster{text: want[cluster].text, c: c}
	}
	return errors.Join(failed...)
}
