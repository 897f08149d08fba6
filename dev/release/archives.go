package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name       string
	content    []byte
	executable bool
	link       string // the file that this one is another name of
}

// archive is an archive that was written.
type archive struct {
	platform platform
	name     string
	sum      string // SHA-256, in hexadecimal
}

// completers are the shells for which archives have a script, and the names under which shells look for it.
var completers = []struct{ shell, file string }{
	{"bash", "completion/bash/mirador"}, {"zsh", "completion/zsh/_mirador"}, {"fish", "completion/fish/mirador.fish"},
	{"powershell", "completion/powershell/mirador.ps1"},
}

// kubectlCompletion is what kubectl runs to complete the words after `kubectl mirador`.
const kubectlCompletion = "#!/bin/sh\nexec kubectl mirador __complete \"$@\"\n"

// writeArchives writes the archives of a release, their checksums and the manifest for krew.
func writeArchives(folder string, from source, all []platform) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the release: %w", err)
	}
	work, err := os.MkdirTemp("", "mirador-release-")
	if err != nil {
		return fmt.Errorf("make a folder for the builds: %w", err)
	}
	defer os.RemoveAll(work)
	common, err := commonFiles(work, from)
	if err != nil {
		return err
	}
	var written []archive
	for _, p := range all {
		a, err := writeArchive(folder, work, from, p, common)
		if err != nil {
			return err
		}
		fmt.Println(a.name)
		written = append(written, a)
	}
	var sums strings.Builder
	for _, a := range written {
		fmt.Fprintf(&sums, "%s  %s\n", a.sum, a.name)
	}
	manifest := krewManifest(from.version, written)
	fmt.Fprintf(&sums, "%s  mirador.yaml\n", sumOf([]byte(manifest)))
	return errors.Join(os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(sums.String()), 0o644),
		os.WriteFile(filepath.Join(folder, "mirador.yaml"), []byte(manifest), 0o644))
}

// commonFiles returns the files that every archive has. The program writes some of them, so it is built for this
// machine, too.
func commonFiles(work string, from source) (files []file, err error) {
	program := filepath.Join(work, "here")
	if err := from.build(platform{runtime.GOOS, runtime.GOARCH}, program); err != nil {
		return nil, err
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		content, err := os.ReadFile(filepath.Join(from.folder, name))
		if err != nil {
			return nil, fmt.Errorf("read a file of the archives: %w", err)
		}
		files = append(files, file{name: name, content: content})
	}
	for _, c := range completers {
		script, err := exec.Command(program, "completion", c.shell).Output()
		if err != nil {
			return nil, fmt.Errorf("write the completion of %s: %w", c.shell, err)
		}
		files = append(files, file{name: c.file, content: script})
	}
	manuals := filepath.Join(work, "man1")
	if out, err := exec.Command(program, "man", manuals).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("write the manual pages: %w\n%s", err, out)
	}
	pages, err := os.ReadDir(manuals)
	if err != nil {
		return nil, fmt.Errorf("read the manual pages: %w", err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(manuals, page.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a manual page: %w", err)
		}
		files = append(files, file{name: "man/man1/" + page.Name(), content: content})
	}
	return files, nil
}

// writeArchive builds the program for a platform and writes its archive.
func writeArchive(folder, work string, from source, p platform, common []file) (archive, error) {
	program := filepath.Join(work, p.os+"-"+p.arch)
	if err := from.build(p, program); err != nil {
		return archive{}, err
	}
	defer os.Remove(program)
	content, err := os.ReadFile(program)
	if err != nil {
		return archive{}, fmt.Errorf("read the program: %w", err)
	}
	bill, err := billOf(program, from)
	if err != nil {
		return archive{}, err
	}
	licences, err := licencesOf(program)
	if err != nil {
		return archive{}, err
	}
	files := slices.Concat([]file{{name: p.program(), content: content, executable: true},
		{name: "THIRD_PARTY_LICENSES", content: licences}, {name: "mirador.cdx.json", content: bill}}, common)
	a := archive{platform: p, name: fmt.Sprintf("mirador_%s_%s_%s.tar.gz", from.version, p.os, p.arch)}
	pack := writeTar
	if p.os == "windows" {
		a.name, pack = strings.TrimSuffix(a.name, ".tar.gz")+".zip", writeZip
		files = append(files, file{name: "kubectl-mirador.exe", content: content, executable: true})
	} else {
		files = append(files, file{name: "kubectl-mirador", link: "mirador"},
			file{name: "kubectl_complete-mirador", content: []byte(kubectlCompletion), executable: true})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	out, err := os.Create(filepath.Join(folder, a.name))
	if err != nil {
		return a, fmt.Errorf("write an archive: %w", err)
	}
	sum := sha256.New()
	if err := errors.Join(pack(io.MultiWriter(out, sum), files, from.time), out.Close()); err != nil {
		return a, fmt.Errorf("write the archive %s: %w", a.name, err)
	}
	a.sum = hex.EncodeToString(sum.Sum(nil))
	return a, nil
}

func (f file) mode() fs.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// writeTar writes an archive for Unix.
func writeTar(w io.Writer, files []file, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(compressed)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode()), Size: int64(len(f.content)), ModTime: at,
			Format: tar.FormatPAX}
		if f.link != "" {
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.link, 0o777
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), compressed.Close())
}

// writeZip writes an archive for Windows.
func writeZip(w io.Writer, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Clean(f.name), Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode())
		part, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.content); err != nil {
			return err
		}
	}
	return z.Close()
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
