package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret writes files as a Kubernetes Secret is mounted: links into a folder that is itself replaced by a link.
func secret(t *testing.T, dir, version string, files map[string]string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Join(dir, version), 0o700))
	for name, content := range files {
		check(t, os.WriteFile(filepath.Join(dir, version, name), []byte(content), 0o600))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	check(t, os.Symlink(version, filepath.Join(dir, "..new")))
	check(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
}

func TestCredentialsAreReloadedWhenTheirFilesAreReplaced(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		check(t, err)
		return string(b)
	}
	first, second := certificate(t), certificate(t)
	dir := t.TempDir()
	secret(t, dir, "..1", map[string]string{"token": "the-first-token-of-all\n", "tls.crt": read(first.cert),
		"tls.key": read(first.key)})
	var log bytes.Buffer
	var token string
	c := &credentials{tokenFile: filepath.Join(dir, "token"), certFile: filepath.Join(dir, "tls.crt"),
		keyFile: filepath.Join(dir, "tls.key"),
		token:   "the-first-token-of-all", setToken: func(s string) error { token = s; return nil },
		log: slog.New(slog.NewTextHandler(&log, nil))}
	check(t, c.load())
	one, err := c.certificate(nil)
	check(t, err)
	c.check()
	if same, _ := c.certificate(nil); same != one || token != "" || log.Len() > 0 {
		t.Errorf("unchanged files were loaded again; the log has %q", log.String())
	}

	secret(t, dir, "..2", map[string]string{"token": "the-second-token-of-all", "tls.crt": read(second.cert),
		"tls.key": read(second.key)})
	c.check()
	two, _ := c.certificate(nil)
	if two == one || token != "the-second-token-of-all" {
		t.Errorf("after new files the certificate is the old one (%v) and the token %q", two == one, token)
	}

	log.Reset()
	secret(t, dir, "..3", map[string]string{"token": "too-short", "tls.crt": read(first.cert),
		"tls.key": read(second.key)})
	c.check()
	c.check()
	if bad, _ := c.certificate(nil); bad != two || token != "the-second-token-of-all" {
		t.Error("unusable files replaced good ones")
	}
	said := log.String()
	if strings.Count(said, "\n") != 2 || strings.Contains(said, "too-short") || strings.Contains(said, "BEGIN") {
		t.Errorf("for two unusable files the log has %q", said)
	}
	check(t, os.Remove(filepath.Join(dir, "..data")))
	c.check()
	if gone, _ := c.certificate(nil); gone != two || token != "the-second-token-of-all" {
		t.Error("removed files removed the credentials")
	}

	secret(t, dir, "..4", map[string]string{"token": "the-fourth-token-of-all", "tls.crt": read(first.cert),
		"tls.key": read(first.key)})
	c.check()
	if four, _ := c.certificate(nil); four == two || token != "the-fourth-token-of-all" {
		t.Error("good files after unusable ones were not loaded")
	}
}
