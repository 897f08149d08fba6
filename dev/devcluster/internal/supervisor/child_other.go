//go:build !linux

package supervisor

import "syscall"

// childAttributes puts a child in its own process group, so that a terminal's
// Ctrl-C reaches only the supervisor. There is no parent-death signal here; the
// pipe to the parent does that work, except for a child that is paused.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
