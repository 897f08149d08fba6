package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	stateVersion = 1
	// maxState bounds the size of the file.
	maxState = 256 << 20
)

// stateFile has the clusters that joined at run time. Fleet.membership guards it.
type stateFile struct {
	path     string
	clusters map[string]stateCluster
}

// stateCluster is a cluster in the file. The kubeconfig has one context.
type stateCluster struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
}

type stateContent struct {
	Version  int            `json:"version"`
	Clusters []stateCluster `json:"clusters"`
}

// loadState reads the state file and joins its clusters.
func (f *Fleet) loadState(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("use the state file %s: there is no folder %s; make it, or name another file", path,
			filepath.Dir(path))
	}
	state, err := readState(path)
	if err != nil {
		return fmt.Errorf("read the state file %s: %w; mend it, or move it away to start without the clusters it remembers",
			path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(state.clusters)) {
		checked, err := checkedConfig([]byte(state.clusters[name].Kubeconfig), "")
		if err == nil {
			err = f.joinChecked(name, checked, nil)
		}
		if err != nil {
			return fmt.Errorf("use the state file %s, cluster %q: %w; mend it, or move it away to start without the "+
				"clusters it remembers", path, name, err)
		}
	}
	f.state = state
	for _, err := range removeUnfinished(path) {
		f.log.Warn("fleet: remove an unfinished state file failed", "error", err)
	}
	return nil
}

// removeUnfinished removes unfinished files that a killed process left in place of a new state file. They contain
// credentials, possibly of clusters that have left since.
func removeUnfinished(path string) (failed []error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = append(failed, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinishedPrefix(path)) && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return failed
}

// unfinishedPrefix returns how the names of temporary files for the state file begin.
func unfinishedPrefix(path string) string { return "." + filepath.Base(path) + "-" }

// readState reads the file. If it does not exist, there are no clusters.
func readState(path string) (*stateFile, error) {
	s := &stateFile{path: path, clusters: map[string]stateCluster{}}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxState+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxState {
		return nil, fmt.Errorf("it is larger than %d bytes", maxState)
	}
	var content stateContent
	if err := json.Unmarshal(body, &content); err != nil {
		return nil, fmt.Errorf("it is not a state file in JSON: %w", withoutText(err))
	}
	if content.Version != stateVersion {
		return nil, fmt.Errorf("it has version %d, and this program supports version %d", content.Version, stateVersion)
	}
	for _, c := range content.Clusters {
		if _, exists := s.clusters[c.Name]; exists {
			return nil, fmt.Errorf("it has two clusters of the name %q", c.Name)
		}
		s.clusters[c.Name] = c
	}
	return s, nil
}

// withoutText replaces an error of package json, which may quote keys from the file.
func withoutText(err error) error {
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("a syntax error at byte %d", at.Offset)
	}
	if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the field %q is of another type", at.Field)
	}
	return errors.New("it cannot be decoded")
}

// add writes another cluster to the file.
func (s *stateFile) add(name string, kubeconfig []byte) error {
	next := maps.Clone(s.clusters)
	next[name] = stateCluster{Name: name, Kubeconfig: string(kubeconfig)}
	return s.save(next)
}

// remove removes a cluster from the file.
func (s *stateFile) remove(name string) error {
	if _, known := s.clusters[name]; !known {
		return nil
	}
	next := maps.Clone(s.clusters)
	delete(next, name)
	return s.save(next)
}

// save replaces the file atomically.
func (s *stateFile) save(next map[string]stateCluster) error {
	content := stateContent{Version: stateVersion, Clusters: slices.SortedFunc(maps.Values(next),
		func(a, b stateCluster) int { return strings.Compare(a.Name, b.Name) })}
	body, err := json.MarshalIndent(content, "", "  ")
	if err == nil {
		err = replaceFile(s.path, append(body, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the state file %s; check its folder and the disk: %w", s.path, err)
	}
	s.clusters = next
	return nil
}

// replaceFile replaces a file atomically, even if the machine crashes. The file's mode is 0600.
func replaceFile(path string, body []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), unfinishedPrefix(path)+"*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		tmp.Close()
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(body); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
