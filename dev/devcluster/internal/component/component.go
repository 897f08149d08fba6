package component

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// runners maps each part to its main function.
var runners = map[part.Name]func(args []string) int{
	part.Etcd:              runEtcd,
	part.APIServer:         runAPIServer,
	part.ControllerManager: runControllerManager,
	part.Scheduler:         runScheduler,
	part.KWOK:              runKWOK,
}

// parentFD is the file descriptor of the read end of a pipe that stays open as long as the supervisor runs: the first
// of exec.Cmd.ExtraFiles.
const parentFD = 3

// Run is the main function of a child process. args is what follows
// part.Subcommand: the part's name, "--", and its flags.
func Run(args []string) int {
	if len(args) < 2 || args[1] != "--" {
		fmt.Fprintf(os.Stderr, "devcluster: %q is internal: use `devcluster up`\n", part.Subcommand)
		return 2
	}
	name, err := part.ParseName(args[0])
	if err != nil {
		fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
		return 2
	}
	// A pipe with that number may also come from make, which passes one to all its children.
	supervised := os.Getenv(part.SupervisorVariable) == strconv.Itoa(os.Getppid())
	parent := os.NewFile(parentFD, "parent")
	if info, err := parent.Stat(); !supervised || err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		fmt.Fprintf(os.Stderr, "devcluster: %q is internal: use `devcluster up`\n", part.Subcommand)
		return 2
	}
	go endWithParent(parent)

	os.Args = append([]string{name.Program()}, args[2:]...)
	return runners[name](args[2:])
}

// endWithParent ends the process when the supervisor's end of the pipe closes.
// Nothing is ever written to that pipe.
func endWithParent(parent *os.File) {
	_, _ = io.Copy(io.Discard, parent)
	fmt.Fprintln(os.Stderr, "devcluster: the supervisor has ended, exiting")
	os.Exit(1)
}
