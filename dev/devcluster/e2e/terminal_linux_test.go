package e2e

import (
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCtrlCInATerminalLeavesNothingOfWhatTheReadmeStarts runs the targets of the README in a terminal as a user does,
// without the workload, and presses Ctrl-C early, and when everything is up.
func TestCtrlCInATerminalLeavesNothingOfWhatTheReadmeStarts(t *testing.T) {
	for name, test := range map[string]struct {
		target string
		up     func(term *terminal, address string) bool
	}{
		"early": {"run", func(term *terminal, _ string) bool {
			return strings.Contains(term.out.String(), "waiting for etcd")
		}},
		"run": {"run", func(term *terminal, address string) bool {
			return strings.Contains(term.out.String(), "http://"+address+"/clusters/us")
		}},
		"quickstart": {"quickstart", func(term *terminal, _ string) bool {
			return slices.Contains(slices.Collect(maps.Values(term.processes(t))), "bin/quickstart")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			temporary, address := t.TempDir(), freeAddress(t)
			// The programs that the targets run exist already: -o keeps make from rebuilding them.
			term := startInTerminal(t, []string{"TMPDIR=" + temporary, "MIRADOR_LISTEN=" + address}, "make", "-C", "../../..",
				"-o", "bin/devcluster", "-o", "bin/mirador", "-o", "bin/quickstart", test.target, "CLUSTER=--no-controllers")
			if !eventually(time.Minute, func() bool { return test.up(term, address) || term.ended() }) || term.ended() {
				t.Fatalf("did not reach the expected output:\n%s", term.out)
			}
			if _, err := term.keyboard.Write([]byte{ctrlC}); err != nil {
				t.Fatal(err)
			}
			if !term.waitEnd(30 * time.Second) {
				t.Fatalf("did not end:\n%s", term.out)
			}
			if left := term.processes(t); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
			if left, err := filepath.Glob(temporary + "/*"); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
			if list := must(t, "list"); strings.Count(list, "\n") > 2 { // its head and the shared cluster
				t.Errorf("list still shows a cluster:\n%s", list)
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatalf("the port is not free again: %v", err)
			}
			l.Close()
		})
	}
}

// ctrlC is the byte that the keyboard sends for Ctrl-C.
const ctrlC = 3

// terminal is a command that runs in its own terminal.
type terminal struct {
	cluster
	keyboard io.Writer
}

// startInTerminal starts a command as the first process of a session with a pseudo-terminal, which ends with the test.
func startInTerminal(t *testing.T, env []string, name string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatalf("unlock the pseudo-terminal: %v", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatalf("ask for the number of the pseudo-terminal: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	term := &terminal{cluster: cluster{out: &output{}, done: make(chan struct{})}, keyboard: master}
	term.cmd = exec.Command(name, args...)
	term.cmd.Env = append(os.Environ(), env...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(term.out, master) }() // ends with an error when the last process closes the terminal
	go func() {
		_ = term.cmd.Wait()
		close(term.done)
	}()
	t.Cleanup(func() {
		for pid := range term.processes(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		master.Close()
	})
	return term
}

// processes returns the command lines of the living processes of the terminal's session.
func (term *terminal) processes(t *testing.T) map[int]string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,sid=,stat=,args=").Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	found := map[int]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == strconv.Itoa(term.cmd.Process.Pid) && !strings.HasPrefix(f[2], "Z") {
			pid, err := strconv.Atoi(f[0])
			if err != nil {
				t.Fatalf("ps printed %q", line)
			}
			found[pid] = strings.Join(f[3:], " ")
		}
	}
	return found
}

// freeAddress returns an unused address of this machine.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
