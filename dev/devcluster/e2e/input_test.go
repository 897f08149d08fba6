package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInvalidInputExitsWith2AndOneLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args string
		says string
	}{
		"unknown command":              {"upp", "unknown command"},
		"unknown flag":                 {"up --colour", "devcluster up --help"},
		"malformed flag":               {"up --nodes many", "devcluster up --help"},
		"argument too many":            {"up dev", "--name"},
		"name that is not a label":     {"up --name Dev_1", "cannot name a cluster"},
		"name already running":         {"up --name shared", "devcluster down shared"},
		"command that does not exist":  {"up --name x -- /no/such/command", "/no/such/command"},
		"workload without controllers": {"up --no-controllers --workload", "--workload"},
		"negative nodes":               {"up --nodes -1", "use 0 to"},
		"nodes without controllers":    {"up --no-controllers --nodes 3", "--no-controllers"},
		"folder below a file":          {"up --name x --data " + file + "/data", "choose another --data"},
		"folder that is a file":        {"up --name x --data " + file, "choose another --data"},
		"folder of something else":     {"up --name x --data " + foreign, "choose an empty or a new folder"},
		"down of an unknown":           {"down nobody", "devcluster list"},
		"down without a name":          {"down", "the name of one cluster"},
		"down of a name and all":       {"down dev --all", "not both"},
		"kubeconfig of an unknown":     {"kubeconfig nobody", "devcluster list"},
		"fault on an unknown":          {"fault nobody pause apiserver", "devcluster list"},
		"unknown fault":                {"fault shared tickle apiserver", "unknown fault"},
		"fault on an unknown part":     {"fault shared pause kubelet", "unknown part"},
		"fault without a part":         {"fault shared pause", "needs a part"},
		"compact with a part":          {"fault shared compact etcd", "takes no part"},
		"load into an unknown":         {"load --name nobody", "devcluster list"},
		"no pods":                      {"load --name shared --pods 0", "--pods"},
		"more templates than pods":     {"load --name shared --pods 3 --templates 4", "--templates"},
		"more namespaces":              {"load --name shared --templates 2 --namespaces 3", "--namespaces"},
		"churn that is no rate":        {"load --name shared --churn fast", "50/s"},
		"churn that is not finite":     {"load --name shared --churn Inf", "--churn"},
		"duration without churn":       {"load --name shared --duration 1s", "--churn"},
		"component by hand":            {"component etcd -- --data-dir=x", "devcluster up"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, strings.Fields(test.args)...)
			if r.status != 2 {
				t.Errorf("exit status %d, want 2", r.status)
			}
			if !strings.HasPrefix(r.stderr, "devcluster: ") || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("not one line `devcluster: …`:\n%s", r.stderr)
			}
			if !strings.Contains(r.stderr, test.says) {
				t.Errorf("the message does not say %q:\n%s", test.says, r.stderr)
			}
			if r.stdout != "" {
				t.Errorf("standard output is not empty:\n%s", r.stdout)
			}
		})
	}
	if left, _ := os.ReadDir(foreign); len(left) != 1 {
		t.Errorf("the foreign folder was written to: %v", left)
	}
}

func TestSocketPathThatIsTooLongIsRefused(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 90))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", long)
	r := run(t, "up", "--name", "x", "--no-controllers")
	if r.status != 2 || !strings.Contains(r.stderr, "XDG_RUNTIME_DIR") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit status %d:\n%s", r.status, r.stderr)
	}
}

func TestRegistryThatOthersCanEnterIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "mirador-devcluster"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	r := run(t, "list")
	if r.status != 2 || !strings.Contains(r.stderr, "chmod 700") {
		t.Errorf("exit status %d:\n%s", r.status, r.stderr)
	}
}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	for _, command := range []string{"up", "list", "kubeconfig", "down", "load", "fault"} {
		out := must(t, command, "--help")
		if !strings.Contains(out, "Examples:\n  ") || !strings.Contains(out, "devcluster "+command) {
			t.Errorf("%s --help shows no example:\n%s", command, out)
		}
	}
	if out := must(t, "--help"); strings.Contains(out, "component") {
		t.Errorf("the internal command shows in the help:\n%s", out)
	}
}
