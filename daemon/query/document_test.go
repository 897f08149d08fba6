package query

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// asMap decodes the whole object.
func (d *Doc) asMap() (map[string]any, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	v, err := decode(d.raw[jsonscan.Space(d.raw, 0):])
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

func TestLookupFindsValues(t *testing.T) {
	const raw = ` {"a":1, "b":{"c":[{"d":"x"},{"d":"y\n\u00e4"}],"e":null,"f":-2.5e3,"g":9223372036854775808},
		"b2":"text","t":true,"n":{"x":{"y":{"z":7}}},"m\u0065":{"ke\u0079":"esc"},"a":2,
		"dup":{"x":1},"dup":{"y":{"q":1,"q":2}}} `
	d := NewDoc([]byte(raw))
	for _, c := range []struct {
		path string
		want any
	}{
		{"a", int64(2)}, {"b.c[0].d", "x"}, {"b.c[1].d", "y\nä"}, {"b.e", nil}, {"b.f", -2500.0},
		{"b.g", 9223372036854775808.0}, {"b2", "text"}, {"t", true}, {"n.x.y.z", int64(7)},
		{"me.key", "esc"}, {"dup.y.q", int64(2)}, {"b.c[1]", map[string]any{"d": "y\nä"}},
		{"n.x", map[string]any{"y": map[string]any{"z": int64(7)}}},
	} {
		if got, ok := d.Lookup(mustPath(t, c.path)); !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is %#v, %v, want %#v", c.path, got, ok, c.want)
		}
	}
	for _, path := range []string{"x", "a.b", "b.c[2]", "b.c.d", "b[0]", "b2[0]", "dup.x", "[0]", "b.e.x",
		"t.x", "n.x.y.z.w"} {
		if got, ok := d.Lookup(mustPath(t, path)); ok {
			t.Errorf("%s is %#v, want nothing", path, got)
		}
	}
}

func TestInvalidDocumentsAreErrors(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`
	for _, raw := range []string{
		"", " ", "null", "[]", `"a"`, "1", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":1}x`,
		`{a:1}`, `{"a":01}`,
		`{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":tru}`, `{"a":nul`, `{"a":"b}`, "{\"a\":\"\n\"}", `{"a":"\x"}`,
		`{"a":"\u12g4"}`, `{"a":"\`,
		`{"a":[1,]}`, `{"a":[1}`, `{"a":[`, `{"a" 1}`, `{"a":1 "b":2}`, deep,
	} {
		d := NewDoc([]byte(raw))
		if v, ok := d.Lookup(mustPath(t, "a")); ok || d.Err() == nil {
			t.Errorf("%.40q: value %v, error %v", raw, v, d.Err())
		}
		if _, err := d.asMap(); err == nil {
			t.Errorf("%.40q is decoded", raw)
		}
		if d.Labels() != nil {
			t.Errorf("%.40q has labels", raw)
		}
	}
	fits := `{"a":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`
	if err := NewDoc([]byte(fits)).Err(); err != nil || !json.Valid([]byte(fits)) {
		t.Errorf("a nesting of %d gives %v", maxDepth, err)
	}
}

// Decoding a deep object takes one pass. One pass for each level would read 8 GB.
func TestDeepObjectsAreReadOnce(t *testing.T) {
	const levels = maxDepth - 1
	raw := []byte(`{"a":` + strings.Repeat(`{"pad":"`+strings.Repeat("x", 150)+`","a":`, levels) + "1" +
		strings.Repeat("}", levels) + "}")
	began := time.Now()
	d := NewDoc(raw)
	if _, err := d.asMap(); err != nil {
		t.Fatal(err)
	}
	w, err := CompileWhere("object == object && object.a != metadata")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := w.Matches(context.Background(), "eu", d); err != nil || !ok {
		t.Error(ok, err)
	}
	nest := []byte(`{"a":` + strings.Repeat("[", levels) + `"` + strings.Repeat("x", 1<<20) + `"` +
		strings.Repeat("]", levels) + "}")
	if w, err = CompileWhere("object.a != []"); err != nil {
		t.Fatal(err)
	}
	if ok, err := w.Matches(context.Background(), "eu", NewDoc(nest)); err != nil || !ok {
		t.Error(ok, err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("decoding took %v", took)
	}
}

func TestDocumentCanBeReset(t *testing.T) {
	d := NewDoc([]byte(`{"metadata":{"labels":{"a":"1"}},"x":1}`))
	if _, err := d.asMap(); err != nil || d.Labels()["a"] != "1" {
		t.Fatal(err, d.Labels())
	}
	d.Reset([]byte(`{"metadata":{"labels":{"b":"2"}}}`))
	if m, err := d.asMap(); err != nil || len(m) != 1 || !maps.Equal(d.Labels(), map[string]string{"b": "2"}) {
		t.Errorf("after Reset: %v, %v, labels %v", m, err, d.Labels())
	}
	if v, ok := d.Lookup(mustPath(t, "x")); ok {
		t.Errorf("after Reset, x is still %v", v)
	}
	d.Reset([]byte("broken"))
	if d.Err() == nil {
		t.Error("no error after Reset to an invalid document")
	}
	d.Reset([]byte("{}"))
	if d.Err() != nil {
		t.Errorf("the error stays after Reset: %v", d.Err())
	}
}

func TestSkippingAllocatesNothing(t *testing.T) {
	raw := testPod(1)
	paths := []Path{mustPath(t, "spec.nodeName"), mustPath(t, "spec.containers[1].image"), mustPath(t, "status.absent"),
		mustPath(t, "metadata.labels['app.kubernetes.io/name']")}
	d := NewDoc(raw)
	d.Err()
	if n := testing.AllocsPerRun(100, func() {
		d.Reset(raw)
		for _, p := range paths {
			d.find(p)
		}
	}); n != 0 {
		t.Errorf("finding %d values allocates %v times", len(paths), n)
	}
}

// A number that does not fit a float64 is not found; encoding/json fails on it.
type outOfRange struct{}

// plainDecode decodes a document with encoding/json, for comparison with Lookup.
func plainDecode(t testing.TB, raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return withNumbers(v)
}

func withNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(v.String(), 64); err == nil {
			return f
		}
		return outOfRange{}
	case map[string]any:
		for k := range v {
			v[k] = withNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	}
	return v
}

func isOutOfRange(v any) bool {
	switch v := v.(type) {
	case outOfRange:
		return true
	case map[string]any:
		for _, x := range v {
			if isOutOfRange(x) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if isOutOfRange(x) {
				return true
			}
		}
	}
	return false
}

// fails reports whether encoding/json cannot decode a valid document, because it has a number out of range, even under
// a name that appears again later.
func fails(raw []byte) bool {
	var v any
	return json.Unmarshal(raw, &v) != nil
}

func isNest(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// sameEverywhere compares Lookup with a decoded value at each of its paths, and at paths that do not exist.
func sameEverywhere(t *testing.T, d *Doc, at []step, want any) {
	if len(at) > 0 {
		got, ok := d.Lookup(Path{at})
		if !ok && isNest(want) && fails(d.raw) {
			// a number inside is out of range
		} else if bad := isOutOfRange(want); ok == bad || !bad && !cmp.Equal(got, want) {
			t.Fatalf("%s is %#v, %v, want %#v", Path{at}, got, ok, want)
		}
	}
	if len(at) > 20 {
		return
	}
	next := func(s step) []step { return append(at[:len(at):len(at)], s) }
	switch v := want.(type) {
	case map[string]any:
		for k := range v {
			sameEverywhere(t, d, next(step{name: k, mayBeInvalid: strings.Contains(k, "\ufffd")}), v[k])
		}
		if _, there := v["no such name"]; !there {
			if got, ok := d.Lookup(Path{next(step{name: "no such name"})}); ok {
				t.Fatalf("a missing member is %v", got)
			}
		}
	case []any:
		for i := range v {
			sameEverywhere(t, d, next(step{index: i, isIndex: true}), v[i])
		}
		if got, ok := d.Lookup(Path{next(step{index: len(v), isIndex: true})}); ok {
			t.Fatalf("the element after the last one is %v", got)
		}
	}
}

func checkAgainstJSON(t *testing.T, d *Doc, raw []byte) {
	t.Helper()
	d.Reset(raw)
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	if !json.Valid(raw) || trimmed[0] != '{' {
		if d.Err() == nil {
			t.Fatalf("%.200q is accepted as valid", raw)
		}
		return
	}
	if d.Err() != nil {
		t.Fatalf("%.200q gives %v", raw, d.Err())
	}
	want := plainDecode(t, raw)
	sameEverywhere(t, d, nil, want)
	got, err := d.asMap()
	if bad := fails(raw); bad != (err != nil) || !bad && !cmp.Equal(any(got), want) {
		t.Fatalf("asMap returns %v, %v, want %v", got, err, want)
	}
}

func FuzzLookup(f *testing.F) {
	for _, s := range []string{
		`{"a":{"b":[1,2,{"c":"d"}]}}`, `{"a":1,"a":{"b":2,"b":{"c":3}}}`, `{"\u0061":{"\"":1}}`, "{\"\xff\":1,\"\xfe\":2}",
		`{"a":1e999}`, "{\"a\":\"\\ud800\"}", ` { "a" : [ ] , "b" : { } } `, `{"":{"":0}}`,
		`{"a":-0,"b":1E+2}`, string(testPod(3)),
	} {
		f.Add([]byte(s))
	}
	var d Doc
	f.Fuzz(func(t *testing.T, raw []byte) { checkAgainstJSON(t, &d, raw) })
}

func TestLookupEqualsEncodingJSON(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	var d Doc
	for range 3000 {
		raw := randomJSON(rng, nil, 0, true)
		if rng.IntN(4) == 0 { // almost valid documents
			raw[rng.IntN(len(raw))] = `{}[]",:\ 1e`[rng.IntN(11)]
		}
		checkAgainstJSON(t, &d, raw)
	}
}

// randomJSON writes values of all kinds, with few different names, so that some are repeated.
func randomJSON(rng *rand.Rand, dst []byte, depth int, object bool) []byte {
	space := func() {
		if rng.IntN(4) == 0 {
			dst = append(dst, " \n\t\r"[rng.IntN(4)])
		}
	}
	words := []string{`"a"`, `"b"`, `"\u0061"`, `"c\\\"d"`, `"longer than eight bytes"`, `"ä"`,
		"\"\xff\"", `""`, `"\ufffd"`}
	kind := rng.IntN(7)
	if object {
		kind = 6
	} else if depth > 4 {
		kind = rng.IntN(5)
	}
	switch kind {
	case 0:
		return append(dst, []string{"true", "false", "null"}[rng.IntN(3)]...)
	case 1:
		return strconv.AppendInt(dst, rng.Int64()>>rng.IntN(64), 10)
	case 2:
		return append(dst, []string{"0", "-0", "1.5", "-2e-3", "1e400", "9223372036854775808", "12E+1"}[rng.IntN(7)]...)
	case 3, 4:
		return append(dst, words[rng.IntN(len(words))]...)
	}
	brackets := "[]"
	if kind == 6 {
		brackets = "{}"
	}
	dst = append(dst, brackets[0])
	for i := range rng.IntN(5) {
		if i > 0 {
			dst = append(dst, ',')
		}
		space()
		if kind == 6 {
			dst = append(dst, words[rng.IntN(len(words))]...)
			space()
			dst = append(dst, ':')
			space()
		}
		dst = randomJSON(rng, dst, depth+1, false)
		space()
	}
	return append(dst, brackets[1])
}
