package main

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// watchWithInitialState asks for a watch that begins with the state.
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
