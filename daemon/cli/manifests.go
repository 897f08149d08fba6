package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// manifest is an object of a file, or the error of reading it.
type manifest struct {
	from string // the file and the number of the document
	obj  *unstructured.Unstructured
	err  error
}

const (
	// maxManifest bounds a file. An API server accepts objects of a few megabytes.
	maxManifest = 64 << 20
	// maxFiles bounds the files of a folder.
	maxFiles = 10_000
)

// readManifests reads files, folders and, for "-", standard input.
func readManifests(names []string, recursive bool, stdin io.Reader) ([]manifest, error) {
	if len(names) == 0 {
		return nil, usagef("--filename is missing; name a file, a folder, or - for standard input")
	}
	var out []manifest
	for _, name := range names {
		if name == "-" {
			out = append(out, readDocuments("standard input", stdin)...)
			continue
		}
		files, err := filesOf(name, recursive)
		if err != nil {
			out = append(out, manifest{from: name, err: err})
		}
		for _, f := range files {
			out = append(out, readFile(f)...)
		}
	}
	return out, nil
}

// isManifest reports whether a file of a folder is read.
func isManifest(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// filesOf returns the files of a name, in order.
func filesOf(name string, recursive bool) (files []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != name && !recursive:
			return filepath.SkipDir
		case d.IsDir() || !isManifest(path):
			return nil
		case len(files) == maxFiles:
			return fmt.Errorf("%s has more than %d files; name a smaller folder", name, maxFiles)
		}
		files = append(files, path)
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the folder %s has no .yaml, .yml or .json file; look below it with -R", name)
	}
	return files, err
}

func readFile(path string) []manifest {
	f, err := os.Open(path)
	if err != nil {
		return []manifest{{from: path, err: err}}
	}
	defer f.Close()
	return readDocuments(path, f)
}

// readDocuments reads the documents of a stream of YAML or JSON, up to the first malformed one.
func readDocuments(from string, r io.Reader) (out []manifest) {
	limited := &io.LimitedReader{R: r, N: maxManifest}
	dec := utilyaml.NewYAMLOrJSONDecoder(limited, 4096)
	for n := 1; ; n++ {
		place := fmt.Sprintf("%s, document %d", from, n)
		var raw runtime.RawExtension
		err := dec.Decode(&raw)
		switch {
		case limited.N <= 0:
			return append(out,
				manifest{from: place, err: fmt.Errorf("there is more than %d MiB; give it in parts", maxManifest>>20)})
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return append(out, manifest{from: place, err: fmt.Errorf("it is neither YAML nor JSON: %w", withoutText(err))})
		}
		if raw := bytes.TrimSpace(raw.Raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		out = append(out, readObjects(place, raw.Raw)...)
	}
}

// withoutText replaces a parser's error, which may quote secrets from the file.
func withoutText(err error) error {
	text := err.Error()
	if i := strings.Index(text, "line "); i >= 0 {
		end := i + len("line ")
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		return errors.New("malformed at " + text[i:end])
	}
	return errors.New("malformed")
}

// readObjects reads one document: an object or a list of objects.
func readObjects(place string, raw []byte) []manifest {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return []manifest{{from: place, err: errors.New("it is not an object with apiVersion and kind")}}
	}
	if !obj.IsList() {
		return []manifest{check(place, obj)}
	}
	list, err := obj.ToList()
	if err != nil {
		return []manifest{{from: place, err: errors.New("its items are not objects with apiVersion and kind")}}
	}
	var out []manifest
	for i := range list.Items {
		out = append(out, check(fmt.Sprintf("%s, item %d", place, i+1), &list.Items[i]))
	}
	return out
}

func check(place string, obj *unstructured.Unstructured) manifest {
	switch {
	case obj.GetAPIVersion() == "" || obj.GetKind() == "":
		return manifest{from: place, err: errors.New("it has no apiVersion or no kind")}
	case obj.GetName() == "" && obj.GetGenerateName() == "":
		return manifest{from: place, err: errors.New("it has no metadata.name")}
	}
	return manifest{from: place, obj: obj}
}
