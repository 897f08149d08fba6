// Package docs tests the documentation: README.md, README.zh-CN.md and the pages below docs/.
//
//   - Go and diff blocks are copies of compiled code. A comment above the block names the file:
//     <!-- from examples/minimal/main.go -->
//   - Commands in sh blocks run against a real cluster and a real daemon, or are listed in notRun with a reason.
//   - YAML blocks are accepted by the API server, or are a configuration that mirador serve starts with.
//   - Links between files lead to files and headings that exist.
//   - docs/options.md has every option of the library and every flag of the program, and no others.
//
// The package has no code of its own.
package docs
