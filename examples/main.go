// Command examples runs the programs that show how informers work, from a queue of plain structs to a controller. Each
// is in its own folder. Most exist twice: with client-go's names (compat) and in the typed API.
//
//	go run ./examples                          # lists the programs
//	go run ./examples 04-watch                 # runs one on the cluster of $KUBECONFIG
//	go run ./examples 04-watch typed           # the same in the typed API
//	go run ./examples -namespace web 04-watch  # another namespace than default
//
// The session files in each folder show what the program prints and what to type in a second terminal.
// "bin/devcluster up --no-controllers" starts a cluster for them.
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

	clientset "github.com/mirador-k8s/mirador/examples/16-clientset"
)

// address is where programs serve HTTP, as in the originals.
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

// inputs are the arguments of a program; each uses some of them.
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
		return fmt.Errorf("unexpected argument %q; give a program and optionally %s or %s", args[2], compat, typed)
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
			return fmt.Errorf("%s serves HTTP on %s: %w", p.name, address, err)
		}
		defer in.listener.Close()
	}
	return w.run(ctx, in)
}

// find returns a program by its name, with or without its number, and one of its variants; "" means the first.
func find(name, variantName string) (*program, *variant, error) {
	for i := range programs {
		p := &programs[i]
		if _, unnumbered, _ := strings.Cut(p.name, "-"); name != p.name && name != unnumbered {
			continue
		}
		var variants []string
		for j := range p.variants {
			if variantName == "" || variantName == p.variants[j].name {
				return p, &p.variants[j], nil
			}
			variants = append(variants, p.variants[j].name)
		}
		return nil, nil, fmt.Errorf("%s has no variant %s, only %s", p.name, variantName, strings.Join(variants, " and "))
	}
	return nil, nil, fmt.Errorf("there is no program %q; run without arguments for a list", name)
}

func menu(out io.Writer) {
	fmt.Fprintln(out, "go run ./examples [-namespace ns] [-kubeconfig file] program [variant]")
	fmt.Fprintln(out)
	for _, p := range programs {
		var variants []string
		for _, v := range p.variants {
			variants = append(variants, v.name)
		}
		fmt.Fprintf(out, "  %-24s %-14s %s\n", p.name, strings.Join(variants, ", "), p.teaches)
	}
	fmt.Fprintln(out)
}

// need says what a program requires.
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

// variant is one version of a program.
type variant struct {
	name string
	run  func(context.Context, inputs) error
}

// The names of variants.
const (
	compat = "compat" // with client-go's names
	typed  = "typed"  // in the API of this module
	plain  = "plain"  // uses client-go's clients and no informer
)

// The functions below make a variant from a function of an example.

func withoutCluster(name string, run func(io.Writer) error) variant {
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
