// Package rules holds the rules of the repository as tests: which package may import which and why, that every
// exported name is documented, and that ARCHITECTURE.md shows the same table. It has no code of its own.
package rules
