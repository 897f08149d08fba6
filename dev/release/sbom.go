package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// bill is a software bill of materials, in the format CycloneDX 1.6.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     billMetadata `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type billMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOf returns the bill of a program, from what Go has recorded in it. It depends on nothing else than the program
// and its source, so that it is the same whenever it is made.
func billOf(program string, from source) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what the program %s is made of: %w", program, err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	sum := sha256.Sum256(content)
	main := module(&debug.Module{Path: info.Main.Path, Version: from.version})
	main.Type = "application"
	main.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
	main.Properties = []property{{"go:package", info.Path}, {"vcs:commit", from.commit}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			main.Properties = append(main.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	standard := module(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
	b := bill{Format: "CycloneDX", SpecVersion: "1.6", SerialNumber: "urn:uuid:" + uuid(sum), Version: 1,
		Metadata:   billMetadata{Timestamp: from.time.Format(time.RFC3339), Component: main},
		Components: []component{standard}}
	for _, m := range modules(info) {
		b.Components = append(b.Components, module(m))
	}
	uses := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		uses.DependsOn = append(uses.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{uses}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(b)
	return out.Bytes(), err
}

// modules returns the modules that a program was built from, besides its own.
func modules(info *debug.BuildInfo) (all []*debug.Module) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, m)
	}
	return all
}

func module(m *debug.Module) component {
	// The type golang of package URLs has lower case only.
	purl := "pkg:golang/" + strings.ToLower(m.Path) + "@" + url.QueryEscape(m.Version)
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

// uuid returns a UUID (version 8: of our own making) for a hash.
func uuid(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
