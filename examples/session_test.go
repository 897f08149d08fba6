package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A session file shows two terminals while a program runs:
//
//	# kubectl run nettool --image=…   a command in the other terminal
//	$ go run ./examples 04-watch      starts the program; commands above run before it
//	ADDED : nettool , Status:  …      a line that the program prints
//	$ curl -s localhost:4000/         sends a request to the program; the lines that follow are the answer
//	^C                                ends the program; without it the program ends by itself
//	(in any order)                    holds for the lines up to the next command
//	(in this order)                   ends that
//
// The whole output is compared: a missing line and an additional line both fail.
type session struct {
	file    string
	program *program
	variant *variant
	steps   []step
}

// step is a command and the lines that the program prints after it.
type step struct {
	command string // with its prompt
	blocks  []block
}

// block is a group of lines, in this order or in any order.
type block struct {
	lines    []string
	anyOrder bool
}

const startCommand = "$ go run ./examples "

// sessionsOf reads the sessions of a program, one for each of its variants.
func sessionsOf(t *testing.T, p *program) []session {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.name, "session*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []session
	for _, file := range files {
		steps, err := readSteps(file)
		if err != nil {
			t.Fatal(err)
		}
		named, way, err := started(steps)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if named != p.name {
			t.Fatalf("%s starts %q, which is another program", file, named)
		}
		for i := range p.variants {
			if v := &p.variants[i]; way == "" || way == v.name {
				all = append(all, session{file, p, v, steps})
			}
		}
	}
	return all
}

// started returns the program and the variant that the steps start.
func started(steps []step) (name, way string, err error) {
	for _, s := range steps {
		if args, ok := strings.CutPrefix(s.command, startCommand); ok {
			name, way, _ = strings.Cut(args, " ")
			return name, way, nil
		}
	}
	return "", "", fmt.Errorf("no line begins with %q", startCommand)
}

func readSteps(file string) ([]step, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var steps []step
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "$ ") || line == "^C" {
			steps = append(steps, step{command: line, blocks: []block{{}}})
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%s:%d: a line is printed before any command", file, n+1)
		}
		at := &steps[len(steps)-1]
		switch line {
		case "(in any order)", "(in this order)":
			at.blocks = append(at.blocks, block{anyOrder: line == "(in any order)"})
		default:
			last := &at.blocks[len(at.blocks)-1]
			last.lines = append(last.lines, line)
		}
	}
	return steps, nil
}

// words splits a command as a shell does, as far as single quotes go.
func words(command string) []string {
	var out []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range command {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
