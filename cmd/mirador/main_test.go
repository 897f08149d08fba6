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
	// The goroutine of lumberjack that removes old audit logs ends only with the process.
	millRun := goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun")
	goleak.VerifyTestMain(m, millRun, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}
