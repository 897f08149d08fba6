// Conformance runs client-go's own tests against compat.
//
// It takes the test files of client-go's packages out of the module cache, leaves
// out what reaches into client-go's insides, and runs the rest inside the packages
// of compat, by an overlay: nothing is copied into this repository.
//
//	go run ./dev/conformance [-race] [-run REGEXP]
//
// What is left out is found by the type checker, whose complaint is the reason that
// is printed. What fails must be listed, with a reason, in known.go; the exit status
// is not zero if another test fails, if a listed one passes, or if fewer tests than
// known.go asks for are run at all. What fails is run once more, by itself, before it
// counts; the few tests that known.go lists as bound to milliseconds of real time, more
// often. The last line reads "N passed, M failed".
package main
