package main

import (
	"fmt"
	"strings"
)

// krewManifest returns the manifest with which krew, the package manager of kubectl plugins, installs the program. It
// expects the archives where GitHub puts the files of a release.
func krewManifest(version string, archives []archive) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: mirador
spec:
  version: %s
  homepage: https://github.com/mirador-k8s/mirador
  shortDescription: Read a fleet of clusters from a local mirror
  description: |
    Mirador mirrors one or many clusters and answers reads of them locally. The plugin lists, watches, counts and
    queries objects of all of them at once, from a daemon or by itself, and shows their past.
  platforms:
`, version)
	for _, a := range archives {
		fmt.Fprintf(&b, `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: https://github.com/mirador-k8s/mirador/releases/download/%s/%s
    sha256: %s
    files:
    - {from: %s, to: .}
    - {from: LICENSE, to: .}
    bin: %s
`, a.platform.os, a.platform.arch, version, a.name, a.sum, a.platform.program(), a.platform.program())
	}
	return b.String()
}
