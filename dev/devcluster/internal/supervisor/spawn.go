package supervisor

import (
	"os/exec"
	"runtime"
)

// spawner starts child processes from one operating-system thread that lives as long as the supervisor. The
// parent-death signal is sent when the thread that started the child ends, and the Go runtime may end any other thread
// at any time.
type spawner struct{ requests chan spawnRequest }

type spawnRequest struct {
	cmd *exec.Cmd
	err chan error
}

// newSpawner starts the thread. It ends with the process.
func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			r.err <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd, make(chan error)}
	s.requests <- r
	return <-r.err
}
