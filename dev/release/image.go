package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// certificateFiles are where systems keep the certificates of authorities.
var certificateFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora
	"/etc/ssl/ca-bundle.pem",             // openSUSE
	"/etc/ssl/cert.pem",                  // macOS
}

// writeImage writes the files of the image. What was in the folder is removed.
func writeImage(folder string, from source, p platform) error {
	for _, part := range []string{"files", "data"} {
		if err := os.RemoveAll(filepath.Join(folder, part)); err != nil {
			return fmt.Errorf("remove the last image: %w", err)
		}
		if err := os.MkdirAll(filepath.Join(folder, part), 0o755); err != nil {
			return fmt.Errorf("make the folder of the image: %w", err)
		}
	}
	root := filepath.Join(folder, "files")
	program := filepath.Join(root, "mirador")
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if err := from.build(p, program); err != nil {
		return err
	}
	bill, err := billOf(program, from)
	if err != nil {
		return err
	}
	licences, err := licencesOf(program)
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(from.folder, "LICENSE"))
	if err != nil {
		return fmt.Errorf("read the licence: %w", err)
	}
	certificates, err := readCertificates()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"etc/ssl/certs/ca-certificates.crt":          certificates,
		"usr/share/doc/mirador/LICENSE":              licence,
		"usr/share/doc/mirador/THIRD_PARTY_LICENSES": licences,
		"usr/share/doc/mirador/mirador.cdx.json":     bill,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make a folder of the image: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write a file of the image: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "version"), []byte(from.version+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the version: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "commit"), []byte(from.commit+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the commit: %w", err)
	}
	fmt.Printf("mirador %s for %s is in %s\n", from.version, p, folder)
	return nil
}

func readCertificates() ([]byte, error) {
	for _, file := range certificateFiles {
		content, err := os.ReadFile(file)
		if err == nil {
			return content, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read the certificates of authorities: %w", err)
		}
	}
	return nil, fmt.Errorf("this machine has no certificates of authorities in %q; install ca-certificates",
		certificateFiles)
}
