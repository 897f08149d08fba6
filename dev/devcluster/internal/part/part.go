// Package part names the parts of a control plane and defines what they share. It does not import them, so that
// programs that only need their names do not link them.
package part

import (
	"fmt"
	"slices"
	"strings"
)

// SupervisorVariable is the environment variable in which a child finds the process id of its supervisor.
const SupervisorVariable = "DEVCLUSTER_SUPERVISOR"

// Name is a part of the control plane.
type Name string

// The parts, in the order in which they are started.
const (
	Etcd              Name = "etcd"
	APIServer         Name = "apiserver"
	ControllerManager Name = "controller-manager"
	Scheduler         Name = "scheduler"
	KWOK              Name = "kwok"
)

// Names returns every part, in the order in which they are started.
func Names() []Name {
	return []Name{Etcd, APIServer, ControllerManager, Scheduler, KWOK}
}

// ParseName accepts a part's name as users write it.
func ParseName(s string) (Name, error) {
	if slices.Contains(Names(), Name(s)) {
		return Name(s), nil
	}
	all := make([]string, 0, len(Names()))
	for _, n := range Names() {
		all = append(all, string(n))
	}
	return "", fmt.Errorf("unknown part %q: use one of %s", s, strings.Join(all, ", "))
}

// programs are the names under which the parts run. The API server derives the
// manager in managedFields from them, so they must be the upstream ones.
var programs = map[Name]string{
	Etcd:              "etcd",
	APIServer:         "kube-apiserver",
	ControllerManager: "kube-controller-manager",
	Scheduler:         "kube-scheduler",
	KWOK:              "kwok",
}

// Program is the name under which the part's process runs.
func (n Name) Program() string { return programs[n] }

// Subcommand is the hidden first argument that turns the devcluster executable
// into one of its parts.
const Subcommand = "component"

// Command returns the argument vector, program name first, that makes the
// devcluster executable run the part with the given flags.
func (n Name) Command(flags []string) []string {
	return append([]string{n.Program(), Subcommand, string(n), "--"}, flags...)
}

// HandsOffLabel marks pods whose status another program writes. KWOK does not change them; when they are deleted, the
// process that runs KWOK acts as their kubelet.
const HandsOffLabel = "devcluster.mirador.dev/load"

// NodeAnnotation with NodeAnnotationValue marks the nodes that KWOK simulates.
const (
	NodeAnnotation      = "kwok.x-k8s.io/node"
	NodeAnnotationValue = "fake"
)
