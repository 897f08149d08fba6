package fleet

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

func TestRedactionsReplaceOnlyWhatTheyName(t *testing.T) {
	secrets, pods := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "pods"}
	maps := schema.GroupResource{Resource: "configmaps"}
	for _, c := range []struct {
		of    schema.GroupResource
		rules []string
		in    string
		out   string
	}{
		{secrets, nil, `{"kind":"Secret","data":{"a":"c2VjcmV0","b":""},"type":"Opaque"}`,
			`{"kind":"Secret","data":{"a":"cmVkYWN0ZWQ=","b":"cmVkYWN0ZWQ="},"type":"Opaque"}`},
		{secrets, nil,
			`{"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{x}","b":"c"}}}`,
			`{"metadata":{"name":"a","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"redacted","b":"c"}}}`},
		{maps, nil, `{"data":{"password":"x"}}`, `{"data":{"password":"x"}}`},
		{maps, []string{"configmaps:/data/*pass*"}, `{"data":{"my.password":"x", "user":"y"},"binaryData":{"pass":"eA=="}}`,
			`{"data":{"my.password":"redacted", "user":"y"},"binaryData":{"pass":"eA=="}}`},
		{maps, []string{"configmaps:/binaryData/*"}, `{"binaryData":{"a":"eA=="}}`, `{"binaryData":{"a":"cmVkYWN0ZWQ="}}`},
		{pods, []string{"pods:/spec/containers/*/env/*/value"},
			`{"spec":{"containers":[ {"env":[{"name":"A","value":"x"},{"name":"B"}]} , {"name":"c"}]}}`,
			`{"spec":{"containers":[{"env":[{"name":"A","value":"redacted"},{"name":"B"}]},{"name":"c"}]}}`},
		{pods, []string{"*:/spec/*"}, `{"spec":{"n":1,"o":{"a":"b"},"l":["x"],"s":"t"}}`,
			`{"spec":{"n":null,"o":null,"l":null,"s":"redacted"}}`},
		{pods, []string{"*:/spec/a", "*:/spec/a/b"}, `{"spec":{"a":{"b":"c"}}}`, `{"spec":{"a":null}}`},
		{pods, []string{"*:/spec/\u00e4"}, `{"spec":{"\u00e4":"x"}}`, `{"spec":{"\u00e4":"redacted"}}`},
		{pods, []string{"pods:/spec/a~1b/~0c"}, `{"spec":{"a/b":{"~c":"x"}}}`, `{"spec":{"a/b":{"~c":"redacted"}}}`},
		{pods, []string{"pods:/spec/a/1"}, `{"spec":{"a":["x","y","z"]}}`, `{"spec":{"a":["x","redacted","z"]}}`},
		{pods, []string{"pods:/spec/a"}, `{}`, `{}`},
	} {
		all, err := parseRedactions(c.rules, false)
		if err != nil {
			t.Fatal(err)
		}
		got := c.in
		if rs := redactionsOf(all, c.of); rs != nil {
			obj, err := rs.transform(&Object{Bytes: []byte(c.in)})
			if err != nil {
				t.Fatal(err)
			}
			got = string(obj.Bytes)
		}
		if got != c.out {
			t.Errorf("%v of %s:\n%s, want\n%s", c.rules, c.in, got, c.out)
		}
	}
}

func TestBadRedactionsAreRefused(t *testing.T) {
	for rule, want := range map[string]string{
		"": "is not a rule", "pods": "is not a rule", "pods:spec": "is not a rule", "pods:/": "is not a rule",
		"PODS:/spec/a": "is not a pattern of resources", "pods:/spec/[": "only * is special", "pods:/spec/a?": "only *",
		"pods:/spec": "more than a value", "pods:/metadata/name": "metadata.name",
		"pods:/metadata/*": "metadata.name", "configmaps:/*data*": "more than a value",
		"pods:/*": "more than a value", "pods:/*/name": "metadata.name", "pods:/meta*/labels": "metadata.labels",
	} {
		if _, err := New(Options{Redact: []string{rule}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", rule, err)
		}
	}
}

// FuzzRedactedObjectsAreValid checks that what is left of any object is JSON, and equals it except for the values.
func FuzzRedactedObjectsAreValid(f *testing.F) {
	f.Add([]byte(`{"data":{"a":"x"},"spec":{"a":[{"b":"secret-value"},"secret-value"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before map[string]any
		if json.Unmarshal(b, &before) != nil || !json.Valid(b) || len(b) == 0 || b[0] != '{' {
			return
		}
		all, err := parseRedactions([]string{"*:/spec/*/*/b", "*:/data/*"}, false)
		if err != nil {
			t.Fatal(err)
		}
		obj, err := redactionsOf(all, schema.GroupResource{Resource: "pods"}).transform(&Object{Bytes: b})
		if err != nil {
			t.Fatal(err)
		}
		var after map[string]any
		if err := json.Unmarshal(obj.Bytes, &after); err != nil {
			t.Fatalf("%s became %s: %v", b, obj.Bytes, err)
		}
		delete(before, "spec")
		delete(before, "data")
		if data, ok := after["data"].(map[string]any); ok {
			for k, v := range data {
				if v != nil && v != "redacted" {
					t.Errorf("data has %q: %v", k, v)
				}
			}
		}
		delete(after, "spec")
		delete(after, "data")
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s became %s", b, obj.Bytes)
		}
	})
}

func TestSecretsAreMirroredWithoutTheirData(t *testing.T) {
	for _, withData := range []bool{false, true} {
		cluster := informertest.NewServer()
		if _, err := cluster.Create(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"namespace": "web",
				"name": "a"}, "data": map[string]any{"key": "dG9wc2VjcmV0"}}}); err != nil {
			t.Fatal(err)
		}
		api := httptest.NewServer(cluster)
		t.Cleanup(api.Close)
		fl, err := New(Options{Secrets: true, SecretData: withData, Include: []string{"secrets"}, WithoutOpenAPI: true,
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := fl.Join("eu", &rest.Config{Host: api.URL}, Origin{Kind: "test"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- fl.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		c, _ := fl.Cluster("eu")
		var e *Entry
		tick := time.NewTicker(5 * time.Millisecond)
		for late := time.Now().Add(30 * time.Second); e == nil && time.Now().Before(late); <-tick.C {
			if res, ok := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}); ok {
				e, _ = res.Entry(object.Key("web/a"))
			}
		}
		tick.Stop()
		if e == nil {
			t.Fatal("the secret was not mirrored")
		}
		if got := string(Bytes(e, nil)); strings.Contains(got, "dG9wc2VjcmV0") != withData ||
			!strings.Contains(got, `"key":`) {
			t.Errorf("with data %v: %s", withData, got)
		}
	}
}
