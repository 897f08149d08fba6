package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

const usage = "use: release image -platform OS/ARCH -o FOLDER, or: release archives -o FOLDER"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("o", "", "`folder` to write")
	version := flags.String("version", "", "`version`; by default the tag of the commit, or one made of its time and hash")
	var only platforms
	flags.Var(&only, "platform", "`OS/ARCH`, may be repeated; all of a release by default")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New(usage)
	}
	from, err := sourceOf(".", *version)
	if err != nil {
		return err
	}
	switch args[0] {
	case "image":
		if len(only) != 1 || only[0].os != "linux" {
			return errors.New("an image is for one platform: give -platform linux/amd64 or -platform linux/arm64")
		}
		return writeImage(*out, from, only[0])
	case "archives":
		if len(only) == 0 {
			only = released
		}
		return writeArchives(*out, from, only)
	}
	return errors.New(usage)
}

// platform is what a program runs on, in the words of Go.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program returns the file name of the program.
func (p platform) program() string {
	if p.os == "windows" {
		return "mirador.exe"
	}
	return "mirador"
}

// released are the platforms of a release.
var released = platforms{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

// platforms is a flag.
type platforms []platform

func (p *platforms) String() string { return fmt.Sprint(*p) }

func (p *platforms) Set(text string) error {
	os, arch, ok := strings.Cut(text, "/")
	if !ok || os == "" || arch == "" {
		return fmt.Errorf("%q is no platform; write it as linux/amd64", text)
	}
	*p = append(*p, platform{os, arch})
	return nil
}
