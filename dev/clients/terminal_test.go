package clients

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// The size of a terminal: wide enough for every column, and high enough for every row of the tests.
const (
	columns = 220
	rows    = 80
)

// terminal is a program in a terminal.
type terminal struct {
	t      *testing.T
	name   string // of the program and its server, for messages
	device *os.File
	screen vt10x.Terminal
}

// openTerminal starts a program in a terminal. It is killed at the end of the test.
func openTerminal(t *testing.T, name string, cmd *exec.Cmd) *terminal {
	t.Helper()
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8")
	device, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	term := &terminal{t: t, name: name, device: device,
		screen: vt10x.New(vt10x.WithWriter(device), vt10x.WithSize(columns, rows))}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewReader(device); term.screen.Parse(in) == nil; {
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		device.Close()
		<-ended
	})
	return term
}

// press sends keys.
func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.device.WriteString(keys); err != nil {
		x.t.Fatalf("%s: %v", x.name, err)
	}
}

const (
	enter  = "\r"
	escape = "\x1b"
)

// lines returns what the screen shows, without trailing spaces and empty lines.
func (x *terminal) lines() []string {
	var out []string
	for line := range strings.Lines(x.screen.String()) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// deadline is how long a screen may take to show what a test waits for.
const deadline = time.Minute

// await waits until the screen fulfils a condition, and fails the test with the screen if it does not.
func (x *terminal) await(what string, holds func(lines []string) bool) []string {
	x.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(deadline); ; <-tick.C {
		lines := x.lines()
		if holds(lines) {
			return lines
		}
		if time.Now().After(late) {
			x.t.Fatalf("%s does not show %s:\n%s", x.name, what, strings.Join(lines, "\n"))
		}
	}
}

// awaitText waits until the screen shows all of the texts.
func (x *terminal) awaitText(texts ...string) []string {
	x.t.Helper()
	return x.await(strings.Join(texts, " and "), func(lines []string) bool {
		all := strings.Join(lines, "\n")
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return false
			}
		}
		return true
	})
}
