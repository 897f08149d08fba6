// Command fuzz runs every fuzz target of the module, each for a while: `make fuzz MINUTES=10`. It finds the targets,
// prints the progress of each, and at the end the failures and where their inputs are. A failing input stays in the
// package's testdata and is run by every `go test` from then on.
package main
