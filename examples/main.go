// Command examples has every program that teaches how informers work, from a queue
// of plain structs to a controller, each in a folder of its own. Most exist twice:
// with client-go's names (compat) and in the typed API.
//
//	go run ./examples                          # lists the programs
//	go run ./examples 04-watch                 # runs one on the cluster of $KUBECONFIG
//	go run ./examples 04-watch typed           # the same in the typed API
//	go run ./examples -namespace web 04-watch  # another namespace than default
//
// What a program prints, and what to do in a second terminal meanwhile, is in the
// session files of its folder. "make run" starts a cluster to try them on.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"

	clientset "github.com/mirador-k8s/mirador/examples/18-clientset"
)

// address is where programs that answer HTTP do so, as in the originals.
const address = "localhost:4000"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file` to read instead of $KUBECONFIG or ~/.kube/config")
	namespace := flag.String("namespace", "default", "the `namespace` to look at")
	flag.Usage = func() {
		menu(flag.CommandLine.Output())
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, flag.Args(),
		inputs{kubeconfig: *kubeconfig, namespace: *namespace, out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "examples:", err)
		os.Exit(1)
	}
}

// inputs are what a program may be given.
type inputs struct {
	kubeconfig string
	config     *rest.Config
	namespace  string
	listener   net.Listener
	out        io.Writer
}

// start runs the program that the arguments name, or lists all.
func start(ctx context.Context, args []string, in inputs) error {
	switch len(args) {
	case 0:
		menu(in.out)
		return nil
	case 1:
		args = append(args, "")
	case 2:
	default:
		return fmt.Errorf("what is %q for? Give a program and, if you like, %s or %s", args[2], compat, typed)
	}
	p, w, err := find(args[0], args[1])
	if err != nil {
		return err
	}
	if p.needs != nothing {
		config, err := clientset.NewK8sConfig(in.kubeconfig)
		if err != nil {
			return err
		}
		in.config = config.K8sRestConfig()
	}
	if p.needs == clusterAndPort {
		if in.listener, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("%s answers HTTP on %s, which cannot be had: %w", p.name, address, err)
		}
		defer in.listener.Close()
	}
	return w.run(ctx, in)
}

// find gives a program by its name, with or without number, and one of its ways; ""
// is the first.
func find(name, way string) (*program, *variant, error) {
	for i := range programs {
		p := &programs[i]
		if _, unnumbered, _ := strings.Cut(p.name, "-"); name != p.name && name != unnumbered {
			continue
		}
		var ways []string
		for j := range p.variants {
			if way == "" || way == p.variants[j].name {
				return p, &p.variants[j], nil
			}
			ways = append(ways, p.variants[j].name)
		}
		return nil, nil, fmt.Errorf("%s does not exist as %s, only as %s", p.name, way, strings.Join(ways, " and "))
	}
	return nil, nil, fmt.Errorf("there is no program %q; run without arguments for a list", name)
}

func menu(out io.Writer) {
	fmt.Fprintln(out, "go run ./examples [-namespace ns] [-kubeconfig file] program [way]")
	fmt.Fprintln(out)
	for _, p := range programs {
		var ways []string
		for _, v := range p.variants {
			ways = append(ways, v.name)
		}
		fmt.Fprintf(out, "  %-24s %-14s %s\n", p.name, strings.Join(ways, ", "), p.teaches)
	}
	fmt.Fprintln(out)
}

// need is what a program cannot do without.
type need uint8

const (
	nothing need = iota
	cluster
	clusterAndPort
)

// program is one example.
type program struct {
	name     string // its folder
	teaches  string
	needs    need
	variants []variant
}

// variant is one way of writing a program.
type variant struct {
	name string
	run  func(context.Context, inputs) error
}

// The ways of writing a program.
const (
	compat = "compat" // with client-go's names
	typed  = "typed"  // in the API of this module
	plain  = "plain"  // there is only one way
)

// The functions below make a variant of what an example exports.

func alone(name string, run func(io.Writer) error) variant {
	return variant{name, func(_ context.Context, in inputs) error { return run(in.out) }}
}

func onCluster(name string, run func(ctx context.Context, config *rest.Config, namespace string,
	out io.Writer) error) variant {
	return variant{name, func(ctx context.Context, in inputs) error { return run(ctx, in.config, in.namespace, in.out) }}
}

func serving(name string, run func(ctx context.Context, config *rest.Config, namespace string, listener net.Listener,
	out io.Writer) error) variant {
	return variant{name, func(ctx context.Context, in inputs) error {
		return run(ctx, in.config, in.namespace, in.listener, in.out)
	}}
}

func byKubeconfig(name string, run func(ctx context.Context, kubeconfig, namespace string,
	out io.Writer) error) variant {
	return variant{name,
		func(ctx context.Context, in inputs) error { return run(ctx, in.kubeconfig, in.namespace, in.out) }}
}
