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
	// leaveTimeout is how long a follower waits for a cluster that leaves.
	leaveTimeout = 10 * time.Second
)

// Follower keeps members of a fleet in line with kubeconfigs on this machine. The files are the operator's own:
// plugins and paths are allowed in them. A file that cannot be read is reported and changes nothing: its clusters
// stay as they are.
type Follower struct {
	f      *Fleet
	origin string // the kind
	// paths lists the files that there are now.
	paths func() ([]string, error)
	// read gives the contexts of a file by the names of their clusters.
	read  func(path string) (map[string]found, error)
	files map[string]*followedFile // by path
	wake  chan struct{}
}

// followedFile is what came of a file.
type followedFile struct {
	stamp    stamp  // of the content that its clusters are in line with
	said     string // the last failure that was reported
	clusters map[string]followedCluster
}

type followedCluster struct {
	found
	c *Cluster // nil where another cluster had the name first
}

// FollowFolder has the clusters of a folder of kubeconfigs join, before or during Run. A cluster's name is its file's
// without the extension, as a DNS label; a file with several contexts is a cluster for each, named name-context.
// Hidden files are left out. That the folder cannot be read is the one error. Run follows it from then on: a file
// that is added or removed is a cluster joining or leaving, and one with other credentials for the same cluster has
// it go on with those.
func (f *Fleet) FollowFolder(dir string) (*Follower, error) {
	w := &Follower{f: f, origin: FromFolder, files: map[string]*followedFile{}, wake: make(chan struct{}, 1)}
	w.paths = func() ([]string, error) { return kubeconfigsIn(dir) }
	w.read = func(path string) (map[string]found, error) {
		contexts, err := readContexts(path, nil)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		file := dnsLabel(strings.TrimSuffix(name, filepath.Ext(name)))
		return byCluster(contexts, func(context string) string {
			if len(contexts) == 1 {
				return file
			}
			return dnsLabel(file + "-" + context)
		})
	}
	if err := w.look(context.Background()); err != nil {
		return nil, err
	}
	return w, nil
}

// FollowKubeconfig has contexts of a kubeconfig join, all of them if none is named, before or during Run. Their
// clusters have the contexts' names, made DNS labels; one whose name another cluster has is left out. Run follows the
// file from then on. A context that was named keeps its cluster when it is gone from the file; where none was named,
// contexts that are added or removed are clusters joining or leaving.
func (f *Fleet) FollowKubeconfig(path string, contexts ...string) (*Follower, error) {
	w := &Follower{f: f, origin: FromFile, files: map[string]*followedFile{}, wake: make(chan struct{}, 1)}
	w.paths = func() ([]string, error) { return []string{path}, nil }
	w.read = func(path string) (map[string]found, error) {
		all, err := readContexts(path, contexts)
		if err != nil {
			return nil, err
		}
		return byCluster(all, dnsLabel)
	}
	file := &followedFile{clusters: map[string]followedCluster{}}
	w.files[path] = file
	want, err := w.read(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	if err := w.settle(context.Background(), file, want, path); err != nil {
		return nil, fmt.Errorf("use the kubeconfig %s: %w", path, err)
	}
	return w, nil
}

// kubeconfigsIn lists the files of a folder that are taken for kubeconfigs.
func kubeconfigsIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of kubeconfigs; its clusters stay as they are: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// byCluster finds the names of the contexts' clusters.
func byCluster(contexts []found, name func(context string) string) (map[string]found, error) {
	out := map[string]found{}
	for _, c := range contexts {
		cluster := name(c.context)
		if cluster == "" {
			return nil, fmt.Errorf("context %q has nothing that a cluster could be named by; rename it", c.context)
		}
		if other, taken := out[cluster]; taken {
			return nil, fmt.Errorf("the contexts %q and %q would both be the cluster %q; rename one, or choose contexts",
				other.context, c.context, cluster)
		}
		out[cluster] = c
	}
	return out, nil
}

// Look has the files looked at now, and not at the next time that Run would.
func (w *Follower) Look() {
	select {
	case w.wake <- struct{}{}:
	default: // it is about to
	}
}

// Run follows the files until ctx ends. They are looked at every so often (0: 5 seconds), and read where they have
// changed.
func (w *Follower) Run(ctx context.Context, every time.Duration) error {
	if every <= 0 {
		every = defaultPoll
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-w.wake:
		}
		said = w.report(said, w.look(ctx))
	}
}

// report logs a failure once for as long as it is the same.
func (w *Follower) report(said string, err error) string {
	if err == nil {
		return ""
	}
	if text := err.Error(); text != said {
		said = text
		w.f.log.Warn("fleet: follow the kubeconfigs", "error", said)
	}
	return said
}

// look compares the files with what is known of them.
func (w *Follower) look(ctx context.Context) error {
	paths, err := w.paths()
	if err != nil {
		return err
	}
	// Clusters leave first: a file may have been renamed.
	for _, path := range slices.Sorted(maps.Keys(w.files)) {
		if !slices.Contains(paths, path) {
			w.report("", w.settle(ctx, w.files[path], nil, path))
			delete(w.files, path)
		}
	}
	for _, path := range paths {
		if ctx.Err() != nil {
			return nil
		}
		file := w.files[path]
		if file == nil {
			file = &followedFile{clusters: map[string]followedCluster{}}
			w.files[path] = file
		}
		file.said = w.report(file.said, w.follow(ctx, file, path))
	}
	return nil
}

// follow brings the clusters of a file in line with it, if it may have changed.
func (w *Follower) follow(ctx context.Context, file *followedFile, path string) error {
	now, err := stampOf(path)
	if err == nil && now.folder() { // a link to one
		return nil
	}
	if err == nil && now.same(file.stamp) {
		return nil
	}
	file.stamp = stamp{} // until all of it is done
	var want map[string]found
	if err == nil {
		want, err = w.read(path)
	}
	if err != nil {
		return fmt.Errorf("read %s; what it was before stays: %w", filepath.Base(path), err)
	}
	if err := w.settle(ctx, file, want, path); err != nil {
		return err
	}
	if now.settled(time.Now()) {
		file.stamp = now
	}
	return nil
}

// settle has the clusters of a file leave that are gone or are others now, and join that are new or are others now. A
// cluster that is the same with other credentials goes on with those.
func (w *Follower) settle(ctx context.Context, file *followedFile, want map[string]found, path string) error {
	var failed []error
	for cluster, have := range file.clusters {
		next, wanted := want[cluster]
		if wanted && (next.text == have.text || have.c == nil) {
			continue
		}
		if wanted && w.renewed(ctx, &have, next) {
			file.clusters[cluster] = followedCluster{next, have.c}
			continue
		}
		delete(file.clusters, cluster)
		if err := w.leave(ctx, have.c); err != nil {
			failed = append(failed, err)
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(want)) {
		if _, have := file.clusters[cluster]; have {
			continue
		}
		c, err := w.f.join(cluster, want[cluster].cfg, Origin{w.origin, path}, nil)
		if err != nil && !(w.origin == FromFile && errors.Is(err, ErrExists)) {
			failed = append(failed, err) // and tried again at the next look
			continue
		}
		file.clusters[cluster] = followedCluster{want[cluster], c}
	}
	return errors.Join(failed...)
}

// renewed has a cluster that is still a member go on in the way that its file says now, if it is the same cluster.
func (w *Follower) renewed(ctx context.Context, have *followedCluster, next found) bool {
	if now, member := w.f.Cluster(have.c.name); !member || now != have.c {
		return false
	}
	same, err := have.c.renew(ctx, next.cfg, sameServer(have.server, next.server))
	if err != nil {
		have.c.log("use a kubeconfig that has changed", err)
	}
	return same
}

// leave has a cluster leave that a file does not have any more. One that left otherwise, and perhaps joined anew,
// does not belong to the file.
func (w *Follower) leave(ctx context.Context, c *Cluster) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := w.f.remove(ctx, c); err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	return nil
}

// stamp tells whether a file may have changed, without reading it.
type stamp struct{ info os.FileInfo }

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	return stamp{info}, err
}

func (s stamp) folder() bool { return s.info.IsDir() }

// same reports whether two stamps are of the same file with the same size and time.
func (s stamp) same(o stamp) bool {
	return o.info != nil && os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() &&
		s.info.ModTime().Equal(o.info.ModTime())
}

// settled reports whether a change after this stamp was taken would show in the next one. The time of a file that was
// written a moment ago may be the same after another write.
func (s stamp) settled(now time.Time) bool {
	const grain = 2 * time.Second // the coarsest of file systems
	return now.Sub(s.info.ModTime()) > grain
}
