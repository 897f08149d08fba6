package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyTheLoopbackAddressIsListenedOn reads the listening sockets of all the cluster's processes from /proc.
func TestOnlyTheLoopbackAddressIsListenedOn(t *testing.T) {
	inodes := map[string]int{}
	pids := []int{shared.cmd.Process.Pid}
	for pid := range children(t, shared.cmd.Process.Pid) {
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil || len(fds) == 0 {
			t.Fatalf("process %d has no files (%v)", pid, err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil {
				if inode, ok := strings.CutPrefix(to, "socket:["); ok {
					inodes[strings.TrimSuffix(inode, "]")] = pid
				}
			}
		}
	}
	listening := 0
	// Addresses are in the kernel's byte order: 127.0.0.1 is 0100007F on a little-endian machine.
	for file, loopback := range map[string][]string{
		"/proc/net/tcp":  {"0100007F", "7F000001"},
		"/proc/net/tcp6": {},
		"/proc/net/udp":  {},
		"/proc/net/udp6": {},
	} {
		f, err := os.Open(file)
		if os.IsNotExist(err) {
			continue // no IPv6 here
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			field := strings.Fields(lines.Text())
			const listen, unconnected = "0A", "07"
			if len(field) < 10 || field[3] != listen && field[3] != unconnected {
				continue
			}
			pid, ours := inodes[field[9]]
			if !ours {
				continue
			}
			listening++
			address, _, _ := strings.Cut(field[1], ":")
			ok := false
			for _, l := range loopback {
				ok = ok || address == l
			}
			if !ok {
				t.Errorf("process %d listens on %s (%s)", pid, field[1], file)
			}
		}
	}
	if listening != 1 {
		t.Errorf("%d listeners, want one: the API server", listening)
	}
}
