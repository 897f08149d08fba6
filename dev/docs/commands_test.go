package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// notRun has the commands of the pages that the test does not run, each with the reason.
var notRun = map[string]string{
	"make run": "starts two clusters and runs until Ctrl-C; a test of the Makefile " +
		"interrupts it in a terminal",
	"make test":                             "runs this test",
	"make bench":                            "takes 20 minutes",
	"make bench-check":                      "takes 20 minutes",
	"make image":                            "dev/deploytest runs it",
	"make release":                          "takes minutes; dev/release tests its parts, and dev/deploytest one archive",
	"make devcluster":                       "has built the cluster that this test uses",
	"go get github.com/mirador-k8s/mirador": "needs the network",
	"go install github.com/mirador-k8s/mirador/cmd/mirador@latest": "needs the network",
	"bin/devcluster up --workload": "runs until Ctrl-C; dev/devcluster tests it, and dev/testcluster starts it " +
		"the same way",
	"bin/devcluster up --no-controllers": "runs until Ctrl-C; dev/testcluster starts the cluster of this test with it",
}

// notRunPattern are commands that other tests run, with the reason.
var notRunPattern = map[*regexp.Regexp]string{
	regexp.MustCompile(`^go run \./examples( |$)`): "the tests of examples play the sessions of every program",
	regexp.MustCompile(`^export KUBECONFIG=`):      "has no effect on the next command here",
	regexp.MustCompile(`--at |^mirador (history|diff) |[?&]at=|/(eu|fleet)@|/history$|history=true`): "the daemon of " +
		"this test has no past; those of daemon/server and daemon/cli have",
	regexp.MustCompile(`^(skopeo|helm) |-n mirador|mirador:me|^kubectl krew `): "dev/deploytest installs the chart on a " +
		"cluster; there is no registry and no krew here",
	regexp.MustCompile(`^source <\(mirador completion`): "bash only; completion itself is run",
}

// command is one command of a sh block, with the lines that continue it.
type command struct {
	page string
	line int
	text string
}

var comment = regexp.MustCompile(`(^|\s+)#.*$`)

// commands returns the commands of a page's sh blocks.
func commands(t *testing.T, page string) (found []command) {
	t.Helper()
	for _, b := range blocks(t, page) {
		if b.lang != "sh" {
			continue
		}
		text := ""
		for i, line := range strings.Split(b.text, "\n") {
			text += comment.ReplaceAllString(line, "")
			if head, more := strings.CutSuffix(text, "\\"); more {
				text = head
				continue
			}
			if text != "" {
				found = append(found, command{page, b.line + i, text})
			}
			text = ""
		}
	}
	return found
}

func TestOnACluster(t *testing.T) {
	s := setStage(t)
	t.Run("every command works", func(t *testing.T) { runCommands(t, s) })
	t.Run("every YAML block is accepted", func(t *testing.T) { runYAML(t, s) })
}

func runCommands(t *testing.T, s *stage) {
	unused := map[string]bool{}
	for text := range notRun {
		unused[text] = true
	}
	ran := map[string]bool{}
	for _, page := range pages(t) {
		for _, c := range commands(t, page) {
			delete(unused, c.text)
			if notRun[c.text] != "" || ran[c.text] || matches(c.text) {
				continue
			}
			ran[c.text] = true
			if words := strings.Fields(c.text); !slices.Contains([]string{"mirador", "kubectl", "curl"}, words[0]) {
				t.Errorf("%s:%d: %q is not run; make it run, or list it in notRun with the reason", c.page, c.line, c.text)
				continue
			}
			s.run(t, c)
		}
	}
	for text := range unused {
		t.Errorf("notRun has %q, which is on no page", text)
	}
}

func matches(text string) bool {
	for pattern := range notRunPattern {
		if pattern.MatchString(text) {
			return true
		}
	}
	return false
}

var makeTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z0-9-]*)")

func TestMakeTargetsExist(t *testing.T) {
	makefile := readFile(t, "Makefile")
	for _, page := range append(pages(t), "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/README.md") {
		for _, m := range makeTarget.FindAllStringSubmatch(readFile(t, page), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", page, m[1])
			}
		}
	}
}

var (
	serves  = regexp.MustCompile(`^mirador serve\b`)
	follows = regexp.MustCompile(`^mirador watch\b|^(mirador|kubectl) .*(--watch|-w)( |$)`)
)

// run runs a command. One that does not end by itself is interrupted once it has printed its first line.
func (s *stage) run(t *testing.T, c command) {
	t.Helper()
	text := s.addresses.Replace(c.text)
	text = strings.Replace(text, "curl ", "curl --fail ", 1)
	if serves.MatchString(text) && !strings.Contains(text, "--listen") && !strings.Contains(text, "--help") {
		text += " --listen 127.0.0.1:0"
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+text)
	if strings.Contains(text, " | ") || strings.Contains(text, " > ") {
		cmd = exec.CommandContext(ctx, "sh", "-c", text)
	}
	cmd.Dir, cmd.Env = s.work, s.env
	endless := serves.MatchString(text) && !strings.Contains(text, "--help") || follows.MatchString(text)
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	if endless {
		said.first = func() { cmd.Process.Signal(syscall.SIGINT) }
	}
	if err := cmd.Run(); err != nil {
		t.Errorf("%s:%d: %s\n%v\n%s", c.page, c.line, text, err, said.text)
	}
}

// output records the output of a command, and calls first after the first line.
type output struct {
	text  []byte
	first func()
}

func (o *output) Write(p []byte) (int, error) {
	o.text = append(o.text, p...)
	if o.first != nil && strings.Contains(string(o.text), "\n") {
		o.first()
		o.first = nil
	}
	return len(p), nil
}

// A block is a file of mirador serve if its kind says so, or if it has no apiVersion: then it is a configuration. Any
// other block must be accepted by the API server.
func runYAML(t *testing.T, s *stage) {
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.lang != "yaml" {
				continue
			}
			content := strings.ReplaceAll(b.text, "https://login.example.com", unreachableIssuer)
			check(t, os.WriteFile(filepath.Join(s.work, "block.yaml"), []byte(content), 0o600))
			text := "mirador serve --config block.yaml"
			switch {
			case strings.Contains(b.text, "kind: AccessConfiguration"):
				text = "mirador serve --access-file block.yaml"
			case strings.Contains(b.text, "kind: AuthenticationConfiguration"):
				text = "mirador serve --authentication-config block.yaml"
			case strings.Contains(b.text, "apiVersion:"):
				text = "kubectl apply --dry-run=server -f block.yaml"
			}
			s.run(t, command{page: b.page, line: b.line, text: text})
		}
	}
}
