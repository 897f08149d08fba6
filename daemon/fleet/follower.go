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
	// leaveTimeout bounds how long a follower waits for a cluster that leaves.
	leaveTimeout = 10 * time.Second
)

// Follower updates the members of a fleet when kubeconfigs change: files on this machine, or a MemberList. Files are
// the operator's own, so plugins and paths are allowed in them. If a kubeconfig cannot be read, the error is logged and
// its clusters stay as they are.
type Follower struct {
	f      *Fleet
	origin string // the kind
	// paths lists the existing files.
	paths   func() ([]string, error)
	stampOf func(path string) (stamp, error)
	// read returns the contexts of a file by the names of their clusters.
	read  func(path string) (map[string]kubeContext, error)
	files map[string]*followedFile // by path
	wake  chan struct{}
}

// followedFile is the state of one file.
type followedFile struct {
	stamp    stamp  // of the content that was applied
	reported string // the last error that was logged
	clusters map[string]followedCluster
}

type followedCluster struct {
	kubeContext
	c *Cluster // nil if another cluster already had the name
}

func newFollower(f *Fleet, origin string) *Follower {
	return &Follower{f: f, origin: origin, stampOf: stampOfFile, files: map[string]*followedFile{},
		wake: make(chan struct{}, 1)}
}

// FollowFolder joins the clusters of a folder of kubeconfigs, before or during Run. A cluster's name is that of its
// file without the extension, as a DNS label. A file with several contexts has a cluster for each, named name-context.
// Hidden files are ignored. FollowFolder fails only if the folder cannot be read. Follower.Run then follows the folder:
// when a file is added or removed, its clusters join or leave, and when a file has new credentials for the same
// cluster, the cluster uses them.
func (f *Fleet) FollowFolder(dir string) (*Follower, error) {
	w := newFollower(f, FromFolder)
	w.paths = func() ([]string, error) { return kubeconfigsIn(dir) }
	w.read = func(path string) (map[string]kubeContext, error) {
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
	if err := w.check(context.Background()); err != nil {
		return nil, err
	}
	return w, nil
}

// FollowKubeconfig joins contexts of a kubeconfig, or all if none is named, before or during Run. The clusters have the
// contexts' names as DNS labels; a context whose cluster name exists is skipped. Follower.Run then follows the file. A
// named context keeps its cluster when it disappears from the file. If no context was named, clusters join and leave
// when contexts are added and removed. The path may be a list, as for LoadKubeconfig.
func (f *Fleet) FollowKubeconfig(path string, contexts ...string) (*Follower, error) {
	w := newFollower(f, FromFile)
	if files := filesOf(path); len(files) > 1 {
		w.stampOf = func(string) (stamp, error) { return stampOfFiles(files) }
	}
	w.paths = func() ([]string, error) { return []string{path}, nil }
	w.read = func(path string) (map[string]kubeContext, error) {
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
	if err := w.apply(context.Background(), file, want, path); err != nil {
		return nil, fmt.Errorf("use the kubeconfig %s: %w", path, err)
	}
	return w, nil
}

// kubeconfigsIn returns the kubeconfigs of a folder: all files that are neither hidden nor backups.
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

// byCluster returns the contexts by the names of their clusters.
func byCluster(contexts []kubeContext, name func(context string) string) (map[string]kubeContext, error) {
	out := map[string]kubeContext{}
	for _, c := range contexts {
		cluster := name(c.context)
		if cluster == "" {
			return nil, fmt.Errorf("the name of context %q has no character of a cluster name; rename it", c.context)
		}
		if other, taken := out[cluster]; taken {
			return nil, fmt.Errorf("the contexts %q and %q would both be the cluster %q; rename one, or choose contexts",
				other.context, c.context, cluster)
		}
		out[cluster] = c
	}
	return out, nil
}

// Check makes Run check the files now.
func (w *Follower) Check() {
	select {
	case w.wake <- struct{}{}:
	default: // already requested
	}
}

// Run checks the files periodically (0: every 5 seconds) until ctx ends, and reads those that have changed.
func (w *Follower) Run(ctx context.Context, every time.Duration) error {
	if every <= 0 {
		every = defaultPoll
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	reported := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-w.wake:
		}
		reported = w.report(reported, w.check(ctx))
	}
}

// report logs an error unless it is the same as the last one, and returns its text.
func (w *Follower) report(reported string, err error) string {
	if err == nil {
		return ""
	}
	if text := err.Error(); text != reported {
		reported = text
		w.f.log.Warn("fleet: follow the kubeconfigs", "error", reported)
	}
	return reported
}

// check applies the changes of all files.
func (w *Follower) check(ctx context.Context) error {
	paths, err := w.paths()
	if err != nil {
		return err
	}
	// Clusters leave first: a file may have been renamed.
	gone := maps.Clone(w.files)
	for _, path := range paths {
		delete(gone, path)
	}
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		w.report("", w.apply(ctx, w.files[path], nil, path))
		delete(w.files, path)
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
		file.reported = w.report(file.reported, w.follow(ctx, file, path))
	}
	return nil
}

// follow applies a file if it may have changed.
func (w *Follower) follow(ctx context.Context, file *followedFile, path string) error {
	now, err := w.stampOf(path)
	if err == nil && now.folder() { // a symbolic link to a folder
		return nil
	}
	if err == nil && now.same(file.stamp) {
		return nil
	}
	file.stamp = stamp{} // until the file is applied
	var want map[string]kubeContext
	if err == nil {
		want, err = w.read(path)
	}
	if err != nil {
		return fmt.Errorf("read %s; its clusters stay as they are: %w", filepath.Base(path), err)
	}
	if err := w.apply(ctx, file, want, path); err != nil {
		return err
	}
	if now.settled(time.Now()) {
		file.stamp = now
	}
	return nil
}

// apply removes the clusters that are no longer in a file or have been replaced, and joins the new ones. A cluster with
// new credentials stays and uses them.
func (w *Follower) apply(ctx context.Context, file *followedFile, want map[string]kubeContext, path string) error {
	var failed []error
	for cluster, have := range file.clusters {
		next, wanted := want[cluster]
		if wanted && (next.text == have.text || have.c == nil) {
			continue
		}
		if wanted && w.reconfigured(ctx, &have, next) {
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
			failed = append(failed, err) // retried at the next check
			continue
		}
		file.clusters[cluster] = followedCluster{want[cluster], c}
	}
	return errors.Join(failed...)
}

// reconfigured makes a member use the new config of its file, if that leads to the same cluster.
func (w *Follower) reconfigured(ctx context.Context, have *followedCluster, next kubeContext) bool {
	if now, member := w.f.Cluster(have.c.name); !member || now != have.c {
		return false
	}
	same, err := have.c.reconfigure(ctx, next.cfg, have.server, next.server)
	if errors.Is(err, errOtherServer) {
		w.f.log.Warn("fleet: a cluster joins anew", "cluster", have.c.name, "reason", err)
	} else if err != nil {
		have.c.log("use a kubeconfig that has changed", err)
	}
	return same
}

// leave removes a cluster that is no longer in a file. A cluster that was removed by Leave, and perhaps joined again,
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
