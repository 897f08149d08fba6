package chart

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// Whether the metrics exist is a test of cmd/mirador, which has them all.
func TestExpressionsAreValidPromQL(t *testing.T) {
	read := func(name string, into any) {
		t.Helper()
		b, err := os.ReadFile(chartPath + "/files/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(b, into); err != nil {
			t.Fatal(err)
		}
	}
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	read("alerts.yaml", &rules)
	var expressions []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("an alert has no name, severity or summary: %+v", r)
			}
			if !strings.Contains(r.Expr, `job="JOB"`) {
				t.Errorf("%s is about the metrics of every job", r.Alert)
			}
			expressions = append(expressions, r.Expr)
		}
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	b, err := os.ReadFile(chartPath + "/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expressions = append(expressions, strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$cluster", ".*").
				Replace(target.Expr))
		}
	}
	if len(expressions) < 30 {
		t.Errorf("there are only %d expressions; the test reads the files wrongly", len(expressions))
	}
	p := parser.NewParser(parser.Options{})
	for _, e := range expressions {
		if _, err := p.ParseExpr(e); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}
