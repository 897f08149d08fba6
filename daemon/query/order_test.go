package query

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestValuesAreOrderedByType(t *testing.T) {
	// In ascending order.
	ascending := []string{
		"false", "true", "-1e400", "-9223372036854775808", "-1.5", `"-1"`, "0", `"1m"`, "0.5", "1", "2", `"10"`, `"1k"`,
		`"1Ki"`, `"500Mi"`, `"1Gi"`, "9007199254740992", "9007199254740993", "9223372036854775806", "9223372036854775807",
		`"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00.5Z"`, `"2026-01-01T01:00:00+00:30"`, `"2026-01-01T01:00:00Z"`, `""`,
		`"-"`, `"1 Gi"`, `"1e999999999"`, `"2026-13-01T00:00:00Z"`, `"E"`, `"Gi"`, `"a"`, `"b\u0061"`, `"bb"`,
		`"ä"`, `[1]`, `{"a":1}`,
	}
	for i, a := range ascending {
		for j, b := range ascending {
			v, w := orderValueOf([]byte(a)), orderValueOf([]byte(b))
			want := sign(i - j)
			if got := v.compare(&w, false); sign(got) != want {
				t.Errorf("%s and %s compare as %d, want %d", a, b, got, want)
			}
			if got := v.compare(&w, true); sign(got) != -want {
				t.Errorf("descending, %s and %s compare as %d, want %d", a, b, got, -want)
			}
		}
	}
	for _, same := range [][2]string{{`"1"`, "1"}, {"1", "1.0"}, {`"1000m"`, "1"}, {`"1Gi"`, "1073741824"},
		{`"0.1"`, "0.1"}, {`"100m"`, "0.1"}, {`"2026-01-01T00:00:00Z"`, `"2026-01-01T01:00:00+01:00"`}, {"9007199254740992",
			"9007199254740992.0"}} {
		v, w := orderValueOf([]byte(same[0])), orderValueOf([]byte(same[1]))
		if v.compare(&w, false) != 0 || w.compare(&v, true) != 0 {
			t.Errorf("%s and %s do not compare as equal", same[0], same[1])
		}
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func TestMissingValuesComeLastInBothDirections(t *testing.T) {
	docs := []string{`{}`, `{"a":null}`, `{"a":1}`, `{"a":"x"}`}
	for _, text := range []string{"a", "-a"} {
		o, err := ParseOrder(text)
		if err != nil {
			t.Fatal(err)
		}
		var ranks [][]orderValue
		for _, d := range docs {
			ranks = append(ranks, o.appendValues(nil, NewDoc([]byte(d))))
		}
		slices.SortStableFunc(ranks, o.compare)
		for i, want := range []bool{true, true, false, false} {
			if (ranks[i][0].class != isMissingValue) != want {
				t.Errorf("%s: place %d is %+v", text, i, ranks[i][0])
			}
		}
	}
}

func TestOrdersAreParsedAndFormatted(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "-metadata.creationTimestamp,metadata.name": "-metadata.creationTimestamp,metadata.name", ".a,{.b}": "a,b",
		"-metadata.labels['a,b'],c": "-metadata.labels['a,b'],c", `a\,b,-c`: "",
	} {
		o, err := ParseOrder(text)
		if text == `a\,b,-c` {
			want = "['a,b'],-c"
		}
		if err != nil || o.String() != want || o.Empty() != (want == "") {
			t.Errorf("%q is read as %q, %v, want %q", text, o, err, want)
		}
	}
	for _, text := range []string{",", "a,", "--a[", "-", "a,b,c,d,e,f,g,h,i", "a b", strings.Repeat("a,", maxSelector)} {
		if _, err := ParseOrder(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.40q gives %v", text, err)
		}
	}
}

// The order of values must be transitive, or the result of sorting would be undefined.
func FuzzOrderIsTotal(f *testing.F) {
	f.Add("1", "1Gi", "a")
	f.Add("2026-01-01T00:00:00Z", "1e5", "9007199254740993")
	f.Add("1e999999999", "-1e-99", ".5Ki")
	f.Add("+1E", "1e+10", "0x1p4")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		values := []orderValue{orderValueOfString(a), orderValueOfString(b), orderValueOfString(c)}
		for _, raw := range []string{a, b, c} {
			if s := (scan{b: []byte(raw)}); s.value(0, nil) && s.at == len(raw) {
				values = append(values, orderValueOf([]byte(raw)))
			}
		}
		for i := range values {
			for j := range values {
				x, y := &values[i], &values[j]
				if x.ascending(y) != -y.ascending(x) {
					t.Fatalf("%+v and %+v", x, y)
				}
				for k := range values {
					if z := &values[k]; x.ascending(y) <= 0 && y.ascending(z) <= 0 && x.ascending(z) > 0 {
						t.Fatalf("%+v, %+v and %+v", x, y, z)
					}
				}
			}
		}
	})
}
