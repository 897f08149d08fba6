package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/pki"
)

// dataDir is the folder with all data of one cluster.
type dataDir string

// state is what a cluster has to remember for a resume.
type state struct {
	// Port is the port of the API server, kept so that copied kubeconfigs stay valid.
	Port int `json:"port"`
}

func (d dataDir) pki() pki.Dir        { return pki.Dir(filepath.Join(string(d), "pki")) }
func (d dataDir) etcd() string        { return filepath.Join(string(d), "etcd") }
func (d dataDir) logs() string        { return filepath.Join(string(d), "logs") }
func (d dataDir) kubeconfig() string  { return filepath.Join(string(d), "kubeconfig") }
func (d dataDir) auditPolicy() string { return filepath.Join(string(d), "audit-policy.yaml") }
func (d dataDir) auditLog() string    { return filepath.Join(d.logs(), "audit.log") }
func (d dataDir) statePath() string   { return filepath.Join(string(d), stateFile) }
func (d dataDir) internal(user string) string {
	return filepath.Join(string(d.pki()), user+".kubeconfig")
}
func (d dataDir) log(name part.Name) string {
	return filepath.Join(d.logs(), string(name)+".log")
}

// stateFile marks a folder as a cluster's data folder.
const stateFile = "devcluster.json"

// EnvironmentError means that the cluster could not be started because of the options or the environment.
type EnvironmentError struct{ err error }

// Error returns the cause's text.
func (e *EnvironmentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *EnvironmentError) Unwrap() error { return e.err }

func environment(format string, args ...any) error {
	return &EnvironmentError{fmt.Errorf(format, args...)}
}

// openDataDir creates the folder and its subfolders, or opens an existing cluster's folder. The returned file holds a
// lock on it.
func openDataDir(path string) (dataDir, state, *os.File, error) {
	d := dataDir(path)
	fail := func(err error) (dataDir, state, *os.File, error) { return "", state{}, nil, err }
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fail(environment("cannot make the data folder: %w: choose another --data", reason(path, err)))
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return fail(environment("cannot read the data folder: %w: choose another --data", reason(path, err)))
	}
	ours := slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == stateFile })
	if len(files) > 0 && !ours {
		return fail(environment("the data folder %s holds something else: choose an empty or a new folder", path))
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fail(environment("cannot make the data folder private: %w: choose another --data", reason(path, err)))
	}
	lock, st, err := d.lockState()
	if err != nil {
		return fail(err)
	}
	for _, dir := range []string{string(d.pki()), d.etcd(), d.logs()} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			lock.Close()
			return fail(environment("cannot write the data folder: %w: choose another --data", err))
		}
	}
	return d, st, lock, nil
}

// reason drops the path that os errors repeat when it is the folder's own.
func reason(path string, err error) error {
	return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
}

// lockState opens and locks the state file, so that two clusters of different names cannot share a folder, and reads
// it. A new file is empty.
func (d dataDir) lockState() (*os.File, state, error) {
	var st state
	f, err := os.OpenFile(d.statePath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, st, environment("cannot write the data folder: %w: choose another --data", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, st, environment("the data folder %s is in use by another cluster: choose another --data", d)
	}
	b, err := io.ReadAll(f)
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &st)
	}
	if err != nil {
		f.Close()
		return nil, st, environment("the data folder is damaged: %s: %w: remove the folder or choose another --data",
			d.statePath(), err)
	}
	return f, st, nil
}

// save overwrites the state in place: the file is also the folder's lock, so it must stay the same file.
func (d dataDir) save(st state) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return os.WriteFile(d.statePath(), b, 0o600)
}

// auditPolicy logs the user, verb and object of each request, without bodies. It omits the received stage: each
// request is logged when it is answered, and a watch also when it starts.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

func (d dataDir) writeAuditPolicy() error {
	return os.WriteFile(d.auditPolicy(), []byte(auditPolicy), 0o600)
}
