// Conformance runs client-go's own tests against compat.
//
// It takes the test files of client-go's packages from the module cache, removes what uses client-go's unexported
// names, and runs the rest inside the packages of compat, by an overlay: nothing is copied into this repository.
//
//	go run ./dev/conformance [-race] [-run REGEXP]
//
// The type checker finds what has to be removed, and its error is printed as the reason. Tests that fail must be
// listed, with a reason, in known.go; the exit status is not zero if another test fails, if a listed one passes, or
// if fewer tests run than known.go requires. A failed test runs once more, alone, before it counts; the few tests
// that known.go lists as timed run more often. The last line reads "N passed, M failed".
package main
