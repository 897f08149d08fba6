// Command gobuild runs "go build" and shows its progress. Compiling Kubernetes takes minutes on two cores, and a silent
// minute looks like a hang.
//
//	go run ./dev/gobuild -C devcluster -o ../bin/devcluster -- -ldflags '-s -w'
//
// Arguments after the flags are passed to go build unchanged.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	dir := flag.String("C", ".", "`folder` of the module to build")
	out := flag.String("o", "", "`file` to write, relative to the folder")
	pkg := flag.String("pkg", ".", "`package` to build")
	flag.Parse()
	if *out == "" {
		fmt.Fprintln(os.Stderr, "gobuild: -o is missing: give the file to write")
		os.Exit(2)
	}
	// The terminal sends Ctrl-C to the go command as well; wait for it to end instead of leaving it behind. The signal is
	// caught and not ignored, because the go command would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	if err := build(*dir, *out, *pkg, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "gobuild: building %s: %v\n", filepath.Base(*out), err)
		os.Exit(1)
	}
}

func build(dir, out, pkg string, flags []string) error {
	name := filepath.Base(out)
	p := newProgress(os.Stdout, name, time.Now())
	defer p.close()

	p.say("downloading modules")
	if err := run(dir, func(string) {}, "mod", "download"); err != nil {
		return fmt.Errorf("downloading modules: %w", err)
	}
	p.say("finding what has to be compiled")
	stale := 0
	list := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, flags...)
	err := run(dir, func(line string) {
		if line != "" {
			stale++
		}
	}, append(list, pkg)...)
	if err != nil {
		return fmt.Errorf("listing packages: %w", err)
	}
	p.mu.Lock()
	p.total = stale
	p.mu.Unlock()
	p.say(fmt.Sprintf("compiling %d packages", stale))
	args := append([]string{"build", "-v", "-o", out}, flags...)
	if err := run(dir, p.step, append(args, pkg)...); err != nil {
		return err
	}
	p.say("done")
	return nil
}

// run starts go in dir and calls line with each line of its output. Lines that look like errors become part of the
// returned error.
func run(dir string, line func(string), args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		w.Close()
		done <- err
	}()
	var tail []string
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		tail = append(tail, in.Text())
		if len(tail) > 40 {
			tail = tail[1:]
		}
		line(in.Text())
	}
	if err := errors.Join(in.Err(), <-done); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, strings.Join(tail, "\n"))
	}
	return nil
}
