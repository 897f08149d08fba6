// Command release builds what users install: the files of the image, and the archives of a release.
//
//	go run ./dev/release image -platform linux/arm64 -o bin/image/arm64
//	go run ./dev/release archives -o bin/release
//
// Both need nothing but Go and what the build needs. The same commit and the same Go version give the same bytes,
// except for the CA certificates of the image, which are those of the machine.
//
// The files of the image are in two folders: root has those of the root file system, data is the folder of the mirror,
// which belongs to the user of the image.
//
// An archive has the program, once more under the name of a kubectl plugin, its licences and those of its modules, a
// bill of materials (CycloneDX), scripts for the completion in shells, and manual pages. Beside the archives there are
// SHA256SUMS and mirador.yaml, the manifest for krew.
package main
