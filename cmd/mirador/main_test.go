package main

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// watchWithInitialState is the query of a watch with an initial state.
const watchWithInitialState = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" +
	"&allowWatchBookmarks=true"

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mirador-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}
