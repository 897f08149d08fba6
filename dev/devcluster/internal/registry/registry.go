package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Entry describes one running cluster.
type Entry struct {
	Name        string    `json:"name"`
	PID         int       `json:"pid"`
	Started     time.Time `json:"started"`
	Nodes       int       `json:"nodes"`
	Controllers bool      `json:"controllers"`
	// Data is the folder with the cluster's state and logs. If it is Temporary, it is removed when the cluster ends.
	Data      string `json:"data"`
	Temporary bool   `json:"temporary"`
	// Server and Kubeconfig are empty until the API server's address is known.
	Server     string `json:"server,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Ready is set once `devcluster up` has reported the cluster ready.
	Ready bool `json:"ready"`
}

// Registry is the folder of running clusters.
type Registry struct{ dir string }

var (
	// ErrRunning means that a running cluster has the name.
	ErrRunning = errors.New("already running")
	// ErrUnknown means that no running cluster has the name.
	ErrUnknown = errors.New("no such cluster is running")
)

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// CheckName reports whether s can name a cluster: a DNS label.
func CheckName(s string) error {
	if !label.MatchString(s) {
		return fmt.Errorf("%q cannot name a cluster: use lower-case letters, digits and dashes, at most 63", s)
	}
	return nil
}

// Open returns this user's registry: in $XDG_RUNTIME_DIR if that is a folder, otherwise below the temporary folder.
// The folder is created when it is needed.
func Open() (*Registry, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("mirador-devcluster-%d", os.Getuid()))
	if xdg := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(xdg) {
		if info, err := os.Stat(xdg); err == nil && info.IsDir() {
			dir = filepath.Join(xdg, "mirador-devcluster")
		}
	}
	r := &Registry{dir: dir}
	if err := r.check(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r, nil
}

// check refuses a folder that another user could have created or can write to.
func (r *Registry) check() error {
	info, err := os.Lstat(r.dir)
	if err != nil {
		return fmt.Errorf("look for running clusters: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of yours: remove it or set XDG_RUNTIME_DIR", r.dir)
	}
	if info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s has mode %#o, so others may get at your clusters: run chmod 700 on it",
			r.dir, info.Mode().Perm())
	}
	return nil
}

// ensure makes the folder if it is missing.
func (r *Registry) ensure() error {
	if err := os.Mkdir(r.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder of running clusters: %w", err)
	}
	return r.check()
}

// maxSocketPath is the longest path of a socket that every supported system allows.
const maxSocketPath = 103

// socketPath returns the path of one of a cluster's sockets.
func (r *Registry) socketPath(name, which string) string {
	return filepath.Join(r.dir, name+"."+which+".sock")
}

// ControlSocket returns the path of the socket on which the cluster's supervisor takes commands.
func (r *Registry) ControlSocket(name string) string { return r.socketPath(name, "control") }

// EtcdSocket returns the path of the socket of the cluster's etcd.
func (r *Registry) EtcdSocket(name string) string { return r.socketPath(name, "etcd") }

// CheckSockets reports whether the cluster's sockets fit the system's limit.
func (r *Registry) CheckSockets(name string) error {
	if p := r.ControlSocket(name); len(p) > maxSocketPath {
		return fmt.Errorf("the socket path %s is longer than the %d bytes a system allows: choose a shorter name or a "+
			"shorter XDG_RUNTIME_DIR", p, maxSocketPath)
	}
	return nil
}

// List returns the running clusters, sorted by name.
func (r *Registry) List() ([]Entry, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, name := range names {
		if e, err := r.Get(name); err == nil {
			all = append(all, e)
		} else if !errors.Is(err, ErrUnknown) {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// names returns every name with a lock file, running or not.
func (r *Registry) names() ([]string, error) {
	files, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for running clusters: %w", err)
	}
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".lock"); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// Get returns the running cluster of that name, or an error that is ErrUnknown.
func (r *Registry) Get(name string) (Entry, error) {
	unknown := fmt.Errorf("cluster %q: %w: `devcluster list` shows those that are", name, ErrUnknown)
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	if _, err := os.Stat(r.lockPath(name)); err != nil {
		return Entry{}, unknown
	}
	lock, err := r.lock(name)
	if err == nil {
		// The lock is free: its supervisor was killed.
		lock.release()
		return Entry{}, unknown
	}
	if !errors.Is(err, ErrRunning) {
		return Entry{}, err
	}
	e, err := r.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		// The supervisor holds the lock and has not written its description yet, or has removed it.
		return Entry{}, unknown
	}
	return e, err
}

func (r *Registry) entryPath(name string) string { return filepath.Join(r.dir, name+".json") }

func (r *Registry) read(name string) (Entry, error) {
	var e Entry
	b, err := os.ReadFile(r.entryPath(name))
	if err != nil {
		return e, fmt.Errorf("read the description of cluster %q: %w", name, err)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("read %s: %w", r.entryPath(name), err)
	}
	return e, nil
}
