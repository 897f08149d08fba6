package chart

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/v2/lint"

	"github.com/mirador-k8s/mirador/daemon/access"
)

var update = flag.Bool("update", false, "write deploy/manifests")

// variants are values that users may give, each with a part of the chart that the defaults do not use.
var variants = map[string]values{
	"the defaults":                  {},
	"everything for Prometheus":     {"metrics": monitoring()},
	"no folder":                     {"persistence": values{"enabled": false}},
	"a certificate of cert-manager": {"tls": values{"certManager": values{"issuerRef": values{"name": "internal"}}}},
	"other clusters only": {"home": values{"enabled": false}, "kubeconfigs": values{"secretName": "clusters"},
		"authentication": values{"tokenReview": false, "adminTokenSecretName": "token"}},
	"OIDC": {"authentication": values{"configuration": values{"apiVersion": "apiserver.config.k8s.io/v1",
		"kind": "AuthenticationConfiguration"}}},
	"access": {"authorization": "review", "access": values{
		"roles":    []any{values{"name": "r", "rules": []any{values{"nonResourceURLs": []any{"/x"}, "verbs": []any{"get"}}}}},
		"bindings": []any{values{"role": "r", "users": []any{"jane"}}},
		"clusters": []any{values{"name": "home", "authorization": "rbac"}}}},
	"members": {"members": values{"secrets": "mirador.dev/member=true", "profiles": true, "namespace": "fleet"}},
	"more resources": {"mirror": values{"secrets": true, "extraResources": values{"": []any{"pods"},
		"example.com": []any{"*"}}}},
	"the pod": {"podLabels": values{"a": "b"}, "podAnnotations": values{"c": "d"}, "nodeSelector": values{"e": "f"},
		"tolerations": []any{values{"operator": "Exists"}}, "affinity": values{"nodeAffinity": values{}},
		"priorityClassName": "high", "extraEnv": []any{values{"name": "GOMEMLIMIT", "value": "1GiB"}},
		"image": values{"tag": "v9", "pullSecrets": []any{values{"name": "registry"}}}},
	"the network": {"networkPolicy": values{"from": []any{values{"namespaceSelector": values{}}}, "ports": []any{8443}},
		"service": values{"type": "LoadBalancer", "annotations": values{"a": "b"}}, "hosts": []any{"mirror.example.com"}},
}

func TestLint(t *testing.T) {
	for name, vals := range variants {
		for _, m := range lint.RunAll(chartPath, vals, namespace).Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func TestEveryVariantPassesTheRestrictedStandard(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, vals := range variants {
		pod := renderObjects(t, vals).pod(t)
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			t.Errorf("%s: %s", name, result.ForbiddenDetail())
		}
		container := pod.Spec.Containers[0]
		if s := container.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root file system can be written to", name)
		}
	}
	// The check can fail.
	pod := renderObjects(t, nil).pod(t)
	pod.Spec.HostNetwork = true
	if policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)).Allowed {
		t.Error("a pod in the network of its node is allowed")
	}
}

func TestFilesOfTheDaemonAreValid(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/options.md") // dev/docs compares it with the program
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(string(page), "\n## mirador serve\n")
	flags, _, _ = strings.Cut(flags, "\n## ")
	for name, vals := range variants {
		all := renderObjects(t, vals)
		if _, err := access.ParseConfig([]byte(all.configFile(t, "access.yaml"))); err != nil {
			t.Errorf("%s: access.yaml: %v", name, err)
		}
		var config map[string]any
		if err := yaml.UnmarshalStrict([]byte(all.configFile(t, "config.yaml")), &config); err != nil {
			t.Errorf("%s: config.yaml: %v", name, err)
		}
		var mounts []string
		for _, m := range all.pod(t).Spec.Containers[0].VolumeMounts {
			mounts = append(mounts, m.MountPath)
		}
		for flag, value := range config {
			if !strings.Contains(flags, "\n| `--"+flag+"` |") {
				t.Errorf("%s: mirador serve has no flag --%s", name, flag)
			}
			path, _ := value.(string)
			if !strings.HasPrefix(path, "/") {
				continue
			}
			if !slices.Contains(mounts, path) && !slices.Contains(mounts, filepath.Dir(path)) {
				t.Errorf("%s: %s is %s, and the pod has only %q", name, flag, path, mounts)
			}
			if file, ok := strings.CutPrefix(path, "/etc/mirador/config/"); ok && all.configFile(t, file) == "" {
				t.Errorf("%s: %s is %s, which is empty", name, flag, path)
			}
		}
	}
}

// No resource is mirrored without a right, and there is no right without a resource.
func TestRightsAreThoseOfWhatIsMirrored(t *testing.T) {
	for name, vals := range variants {
		all := renderObjects(t, vals)
		if !all.has("ClusterRole") {
			continue
		}
		var config struct{ Include []string }
		if err := yaml.Unmarshal([]byte(all.configFile(t, "config.yaml")), &config); err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.one(t, "ClusterRole").Object, &role)
		if err != nil {
			t.Fatal(err)
		}
		var readable, others []string
		for _, rule := range role.Rules {
			if fmt.Sprint(rule.Verbs) != "[list watch]" {
				others = append(others, fmt.Sprint(rule.Verbs, rule.Resources, rule.ResourceNames))
				continue
			}
			for _, resource := range rule.Resources {
				readable = append(readable, resource+"."+rule.APIGroups[0])
			}
		}
		slices.Sort(readable)
		slices.Sort(config.Include)
		if !slices.Equal(readable, config.Include) {
			t.Errorf("%s: mirrored are %q, and readable %q", name, config.Include, readable)
		}
		want := []string{"[get] [namespaces] [kube-system]", "[create] [tokenreviews] []"}
		if name == "access" {
			want = append(want, "[create] [subjectaccessreviews] []")
		}
		if !slices.Equal(others, want) {
			t.Errorf("%s: the other rights are %q, want %q", name, others, want)
		}
		if mirrored := slices.Contains(config.Include, "secrets."); mirrored != (name == "more resources") {
			t.Errorf("%s: secrets are mirrored: %v", name, mirrored)
		}
	}
}

func TestSecretsOfMembersAreReadInTheirNamespaceOnly(t *testing.T) {
	all := renderObjects(t, variants["members"])
	for _, kind := range []string{"Role", "RoleBinding"} {
		if o := all.one(t, kind); o.GetNamespace() != "fleet" {
			t.Errorf("%s is in the namespace %q", kind, o.GetNamespace())
		}
	}
	var role rbacv1.Role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.one(t, "Role").Object, &role); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rule := range role.Rules {
		got = append(got, fmt.Sprint(rule.Verbs, rule.Resources))
	}
	if want := []string{"[list watch] [secrets]", "[list watch] [clusterprofiles]"}; !slices.Equal(got, want) {
		t.Errorf("the rights are %q, want %q", got, want)
	}
	if renderObjects(t, nil).has("Role") {
		t.Error("the defaults have a Role")
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for want, vals := range map[string]values{
		"additional properties 'imag' not allowed":      {"imag": values{}},
		"at '/authorization': value must be one of":     {"authorization": "none"},
		"at '/persistence/maxBytes': minimum":           {"persistence": values{"maxBytes": 1000}},
		"at '/home/name': 'A B' does not match pattern": {"home": values{"name": "A B"}},
		"at '/mirror/resources/apps/0'": {"mirror": values{"resources": values{
			"apps": []any{"Deployment!"}}}},
		"nobody could use the daemon":                      {"authentication": values{"tokenReview": false}},
		"authentication.tokenReview asks the home cluster": {"home": values{"enabled": false}},
	} {
		if _, err := render(vals); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want %q", vals, err, want)
		}
	}
}

func TestSchemaHasEveryValue(t *testing.T) {
	read := func(name string, into any) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(chartPath, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	var defaults, schema map[string]any
	read("values.yaml", &defaults)
	read("values.schema.json", &schema)
	var compare func(path string, value any, schema map[string]any)
	compare = func(path string, value any, schema map[string]any) {
		fields, ok := schema["properties"].(map[string]any)
		if !ok {
			return
		}
		given, _ := value.(map[string]any)
		for name, field := range fields {
			if _, ok := given[name]; !ok && path+"/"+name != "/global" && !strings.HasPrefix(path, "/tls/certManager") {
				t.Errorf("values.yaml has no %s/%s", path, name)
			}
			compare(path+"/"+name, given[name], field.(map[string]any))
		}
	}
	compare("", defaults, schema)
}

// What the chart is for kubectl: with a certificate that exists, because a generated one would differ each time.
func TestManifestsAreTheRenderedChart(t *testing.T) {
	files, err := render(values{"tls": values{"secretName": "mirador-tls"}, "metrics": monitoring()})
	if err != nil {
		t.Fatal(err)
	}
	const head = "# Written by go test ./chart -update in dev/deploytest, from deploy/chart. See docs/operate.md.\n"
	manifests := map[string]string{"monitoring.yaml": head + trimmed(files["monitoring.yaml"]), "mirador.yaml": head}
	for _, name := range []string{"rbac.yaml", "configmap.yaml", "service.yaml", "statefulset.yaml",
		"poddisruptionbudget.yaml", "networkpolicy.yaml"} {
		manifests["mirador.yaml"] += "---\n" + trimmed(files[name])
		delete(files, name)
	}
	for name, text := range files {
		if name != "monitoring.yaml" && name != "NOTES.txt" && strings.TrimSpace(text) != "" {
			t.Errorf("no manifest has what the template %s makes", name)
		}
	}
	for name, want := range manifests {
		path := filepath.Join(root, "deploy/manifests", name)
		want = strings.ReplaceAll(want, "app.kubernetes.io/managed-by: Helm\n", "app.kubernetes.io/managed-by: kubectl\n")
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s is not the rendered chart (%v); write it with go test ./chart -update in dev/deploytest", path, err)
		}
	}
}

// trimmed removes empty lines at both ends and spaces at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimPrefix(strings.TrimSpace(text), "---\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestDashboardIsJSON(t *testing.T) {
	var dashboard struct {
		Title  string
		Panels []struct {
			ID    int
			Title string
		}
	}
	b, err := os.ReadFile(chartPath + "/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("the panel %d %q has no number or no title of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
	}
	if len(ids) < 10 {
		t.Errorf("the dashboard has %d panels", len(ids))
	}
}
