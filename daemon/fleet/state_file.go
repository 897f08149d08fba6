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
	// maxState bounds the file: some hundred thousand certificates.
	maxState = 256 << 20
)

// stateFile remembers the clusters that joined at run time. The fleet's moves lock
// guards it.
type stateFile struct {
	path     string
	clusters map[string]remembered
}

// remembered is a cluster in the file. The kubeconfig has one context.
type remembered struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
}

type stateContent struct {
	Version  int          `json:"version"`
	Clusters []remembered `json:"clusters"`
}

// recall reads the state file and has its clusters join.
func (f *Fleet) recall(path string) error {
	state, err := readState(path)
	if err != nil {
		return fmt.Errorf("read the state file %s: %w; mend it, or move it away to start without the clusters it remembers",
			path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(state.clusters)) {
		cfg, _, err := checkedConfig([]byte(state.clusters[name].Kubeconfig), "")
		if err == nil {
			_, err = f.join(name, cfg, Origin{FromJoin, serverOf(cfg)}, nil)
		}
		if err != nil {
			return fmt.Errorf("use the state file %s, cluster %q: %w; mend it, or move it away to start without the "+
				"clusters it remembers", path, name, err)
		}
	}
	f.state = state
	for _, err := range sweep(path) {
		f.log.Warn("remove what is left of a state file that was not written to its end", "err", err)
	}
	return nil
}

// sweep removes what a kill left of files that were to replace the state file: there are credentials in them, of
// clusters that may have left since.
func sweep(path string) (failed []error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = append(failed, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished(path)) && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return failed
}

// unfinished is how the name of a file begins that is to replace another.
func unfinished(path string) string { return "." + filepath.Base(path) + "-" }

// readState reads the file. One that does not exist remembers nothing.
func readState(path string) (*stateFile, error) {
	s := &stateFile{path: path, clusters: map[string]remembered{}}
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
		return nil, fmt.Errorf("it is no JSON of this kind: %w", withoutText(err))
	}
	if content.Version != stateVersion {
		return nil, fmt.Errorf("it is of version %d, and this program knows version %d", content.Version, stateVersion)
	}
	for _, c := range content.Clusters {
		if _, twice := s.clusters[c.Name]; twice {
			return nil, fmt.Errorf("it has two clusters of the name %q", c.Name)
		}
		s.clusters[c.Name] = c
	}
	return s, nil
}

// withoutText keeps an error of package json from quoting what it read: there are keys in it.
func withoutText(err error) error {
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("a syntax error at byte %d", at.Offset)
	}
	if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the field %q is of another type", at.Field)
	}
	return errors.New("it cannot be decoded")
}

// add and remove change what is remembered, in the file first.
func (s *stateFile) add(name string, kubeconfig []byte) error {
	next := maps.Clone(s.clusters)
	next[name] = remembered{Name: name, Kubeconfig: string(kubeconfig)}
	return s.save(next)
}

func (s *stateFile) remove(name string) error {
	if _, known := s.clusters[name]; !known {
		return nil
	}
	next := maps.Clone(s.clusters)
	delete(next, name)
	return s.save(next)
}

// save writes a new file and puts it in the place of the old one, so that there is a
// whole one at any time.
func (s *stateFile) save(next map[string]remembered) error {
	content := stateContent{Version: stateVersion, Clusters: slices.SortedFunc(maps.Values(next),
		func(a, b remembered) int { return strings.Compare(a.Name, b.Name) })}
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

// replaceFile is all or nothing, for a crash at any moment too. The file's mode is 0600.
func replaceFile(path string, body []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), unfinished(path)+"*") // of mode 0600
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
