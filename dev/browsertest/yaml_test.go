package browsertest

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/dev/browsertest/fakeapi"
)

// awkward are strings that some version of YAML reads as another type.
var awkward = []string{"", " ", "~", "null", "Null", "true", "False", "yes", "NO", "on", "Off", "y", "n", "0", "007",
	"0x1f", "0o17", "0b11", "1_000", "1e3", "1.5", ".5", "5.", "-1", "+1", ".inf", "-.Inf", ".NaN",
	"1:30", "12:30:45", "2024-01-01", "2024-01-01T00:00:00Z", "2001-12-14 21:59:43.10 -5", "10.0.0.1", "1.2.3", "1.2",
	"3d", "100m", "1Gi", "5e", "1e", "0x", "a: b", "a:b", "a:", ":a", "a #b", "a#b", "#a", "- a", "-", "--", "---", "...",
	"? a", "?", "!a", "&a", "*a", "|", ">", "%a", "@a", "`a`", "'a'", `"a"`, "a'b", `a"b`, "[a]", "{a: b}", "a, b", ",",
	"[", "]", "{", "}", "<<", "=", "a\nb", "a\nb\n", "a\n\nb\n\n", "\na", "\n", "\n\n", " a\nb",
	"a\n b\n  c", "a\n\tb", "\ta",
	"a\tb", "a ", "a  b", " a", "a\n ", "a\n  \nb", "a \nb", "a\r\nb", "\r", "a\u0085b", "a\u2028b\nc", "\ufeffa",
	"a\u0000b", "\u001b[0m", "\u007f", "é", "日本語", "😀", "😀\n😀\n", "a\\b", `C:\n`, "key: |\n  text\n",
	"- a\n- b", "# c\n# d\n",
	"00000001-0000-4000-8000-000000000001", "1e400000-0000-4000-8000-000000000001", "deadbeef", "12e03",
	"1a", "9z", "_1", "a_1", "/bin/sh", "--flag=x", "$(VAR)", "<img src=x>",
	"a\n---\nb", "...\na", "a\n...\n", strings.Repeat("long ", 300)}

func TestYAMLReadsBackAsTheSameJSON(t *testing.T) {
	p := open(t, "", fakeapi.Options{Pods: map[string]int{"eu": 10}})
	var docs []string
	add := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(raw))
	}
	for _, s := range awkward {
		add(s)
		add(map[string]any{s: s, "a": []any{s, []any{s, s}, map[string]any{"b": s, s: []any{}}}})
	}
	docs = append(docs, `9223372036854775807`,
		`{"a":-9223372036854775808,"b":1.0,"c":1e30,"d":0.1,"e":-0,"f":12345678901234567890,"g":1E5,"h":-0.0}`,
		`[]`, `{}`, `null`, `[[]]`, `[[],{},[[1]],null,true]`, `{"a":{"b":{"c":[{"d":[[{"e":1}]]}]}}}`,
		strings.Repeat(`{"a":[`, 150)+`1`+strings.Repeat(`]}`, 150), strings.Repeat(`[`, 500)+`"x"`+strings.Repeat(`]`, 500),
		`{"`+strings.Repeat("k", 2000)+`":{"x":1},"`+strings.Repeat("q", 2000)+`":"y"}`)
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	for range 300 {
		add(random(r, 4))
	}
	t.Logf("%d documents, seed %d", len(docs), seed)

	arg, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	p.eval(`import(document.querySelector('script[src$="main.js"]').src.replace('main.js', 'yaml.js'))`+
		`.then(({parse, stringify}) => `+string(arg)+`.map(d => stringify(parse(d))))`, &texts)
	for i, text := range texts {
		if t.Failed() {
			break
		}
		sameYAML(t, text, []byte(docs[i]))
		if !strings.HasSuffix(text, "\n") {
			t.Errorf("no line break at the end of %q", text)
		}
	}
}

func random(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case n < 2 && depth > 0:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = random(r, depth-1)
		}
		return list
	case n < 6 && depth > 0:
		m := map[string]any{}
		for range r.IntN(5) {
			m[word(r)] = random(r, depth-1)
		}
		return m
	case n == 6:
		return r.Int64()
	case n == 7:
		return r.NormFloat64()
	case n == 8:
		return awkward[r.IntN(len(awkward))]
	}
	return word(r)
}

const letters = "ab1.0-:# \n\t'\"[]{},&*!|>%@`\\~?=<_/é\u0085\u2028+eEx"

func word(r *rand.Rand) string {
	runes := []rune(letters)
	var b strings.Builder
	for range r.IntN(8) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}
