// Command fuzz runs every fuzz target of the module, each for a while: `make fuzz
// MINUTES=10`. It finds the targets by itself, says how each is doing, and at the end
// what was found and where the input lies that shows it. An input that was found stays
// in the package's testdata and is run by every `go test` from then on.
package main
