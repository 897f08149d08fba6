package supervisor

import "syscall"

// childAttributes puts a child in its own process group, so that a terminal's
// Ctrl-C reaches only the supervisor, and has the kernel kill it when the
// supervisor's spawning thread ends. That works on a stopped child as well.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
