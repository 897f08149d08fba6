package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 1000, "how many seeds are run for each bug")
	only := flag.String("only", "", "only the bugs whose name matches this regular expression")
	folder := flag.String("patches", filepath.Join("informer", "testdata", "mutants"), "where the patches are")
	flag.Parse()
	ok, err := hunt(*folder, *only, *seeds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// hunt runs the simulator on every bug and reports whether all were caught.
func hunt(folder, only string, seeds int) (bool, error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("-only: %w", err)
	}
	all, err := readMutants(folder)
	if err != nil {
		return false, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	caught, tried := 0, 0
	began := time.Now()
	for _, m := range all {
		if !match.MatchString(m.name) {
			continue
		}
		tried++
		fmt.Printf("%-50s ", m.name)
		v, err := m.try(filepath.Join(work, m.name), seeds)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Println(v)
		if v.caught {
			caught++
		}
	}
	if tried == 0 {
		return false, fmt.Errorf("no bug matches -only %q", only)
	}
	fmt.Printf("%d of %d bugs caught, in %s\n", caught, tried, time.Since(began).Round(time.Second))
	return caught == tried, nil
}
