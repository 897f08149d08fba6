package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// source is what is built.
type source struct {
	folder  string
	version string
	commit  string
	time    time.Time // that of the commit
}

// sourceOf returns the source in a folder. A version that is given needs no git.
func sourceOf(folder, version string) (source, error) {
	s := source{folder: folder, version: version, time: time.Unix(0, 0).UTC()}
	line, err := s.git("log", "-1", "--format=%H %ct")
	if err != nil {
		if version == "" {
			return s, fmt.Errorf("find the version in git: %w; give it with -version", err)
		}
		s.commit = "unknown"
		return s, nil
	}
	var seconds int64
	if _, err := fmt.Sscanf(line, "%s %d", &s.commit, &seconds); err != nil {
		return s, fmt.Errorf("find the version in git: the commit is %q: %w", line, err)
	}
	s.time = time.Unix(seconds, 0).UTC()
	if version != "" {
		return s, nil
	}
	if s.version, err = s.git("describe", "--tags", "--exact-match", "--match", "v*"); err != nil {
		s.version = pseudoVersion(s.commit, s.time) // the commit has no tag
	}
	changes, err := s.git("status", "--porcelain")
	if err != nil {
		return s, fmt.Errorf("find changes that are not committed: %w", err)
	}
	if changes != "" {
		s.version += "-modified"
	}
	return s, nil
}

// pseudoVersion returns the version that Go gives to a commit without a tag.
func pseudoVersion(commit string, at time.Time) string {
	return "v0.0.0-" + at.Format("20060102150405") + "-" + commit[:min(12, len(commit))]
}

func (s source) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = s.folder
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// build builds the program for a platform. It is static, and has no path of this machine.
func (s source) build(p platform, file string) error {
	linker := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", s.version, s.commit)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", linker, "-o", file, "./cmd/mirador")
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", p, err, out)
	}
	return nil
}
