package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

func TestEveryProgramPrintsWhatItsSessionSays(t *testing.T) {
	t.Cleanup(func() { removeWidgets(t) })
	for i := range programs {
		p := &programs[i]
		for _, s := range sessionsOf(t, p) {
			t.Run(p.name+"/"+s.variant.name, func(t *testing.T) { play(t, s) })
		}
	}
}

// removeWidgets deletes what 19-everything creates outside its namespace, so that the sessions can be played again on
// the same cluster.
func removeWidgets(t *testing.T) {
	c := testcluster.Start(t, testcluster.WithoutControllers())
	c.Kubectl(t, "delete", "--ignore-not-found", "customresourcedefinition", "widgets.example.com")
	awaitServed(t, c.Config(), "widgets", false)
}

func TestEveryVariantHasASession(t *testing.T) {
	for i := range programs {
		p := &programs[i]
		played := map[string]bool{}
		for _, s := range sessionsOf(t, p) {
			played[s.variant.name] = true
		}
		for _, v := range p.variants {
			if !played[v.name] {
				t.Errorf("%s %s has no session", p.name, v.name)
			}
		}
	}
}

func TestEveryFolderIsAProgramAndIsInTheReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("[0-9][0-9]-*")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
		if !bytes.Contains(readme, []byte("["+p.name+"]("+p.name+")")) {
			t.Errorf("README.md has no link to %s", p.name)
		}
	}
	if !slices.Equal(folders, names) {
		t.Errorf("the folders are %q, the programs %q", folders, names)
	}
}

func TestWrongArgumentsAreExplained(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"no-such"}, `there is no program "no-such"`},
		{[]string{"08-one-listener", "compat"}, "only typed"},
		{[]string{"01-deltafifo", "typed", "more"}, `unexpected argument "more"`},
		{[]string{"03-list"}, "set KUBECONFIG"},
	} {
		err := start(t.Context(), c.args, inputs{kubeconfig: filepath.Join(t.TempDir(), "none"), out: io.Discard})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: the error is %v, want it to say %q", c.args, err, c.says)
		}
	}
	var out bytes.Buffer
	if err := start(t.Context(), nil, inputs{out: &out}); err != nil ||
		!strings.Contains(out.String(), "22-memory-released") {
		t.Errorf("without arguments: %v, %q", err, out.String())
	}
	out.Reset()
	if err := start(t.Context(), []string{"deltafifo", "typed"}, inputs{out: &out}); err != nil || out.Len() == 0 {
		t.Errorf("without its number: %v, %q", err, out.String())
	}
}
