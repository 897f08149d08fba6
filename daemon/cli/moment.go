package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/internal/jsondiff"
)

const momentHelp = "a time such as 2026-11-17T10:00:00Z, or a duration before now such as "

// moment returns a time of a flag for a server: RFC 3339 as it is, and a duration, with or without a minus, as the time
// that long before now. So all requests of a command are about one moment.
func moment(flag, text string, now time.Time) (string, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		if t.After(now) {
			return "", usagef("--%s %s is in the future; give an earlier time", flag, text)
		}
		return text, nil
	}
	days := time.Duration(0)
	rest := strings.TrimPrefix(text, "-")
	if n, after, ok := strings.Cut(rest, "d"); ok {
		var whole uint16
		if _, err := fmt.Sscanf(n+".", "%d.", &whole); err != nil {
			return "", errMoment(flag, text)
		}
		days, rest = time.Duration(whole)*24*time.Hour, after
	}
	d := time.Duration(0)
	if rest != "" || days == 0 {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return "", errMoment(flag, text)
		}
	}
	return now.Add(-days - d).UTC().Format(time.RFC3339Nano), nil
}

func errMoment(flag, text string) error {
	return usagef("--%s is %s-15m or -2d, not %q", flag, momentHelp, text)
}

// fieldLines describes the differences of an object, one per line. It leaves out those after the limit; 0 means none.
func fieldLines(changes []jsondiff.Change, limit int) (lines []string) {
	for i, c := range changes {
		if limit > 0 && i == limit && len(changes) > limit+1 {
			return append(lines, fmt.Sprintf("and %d more; -o wide shows them", len(changes)-limit))
		}
		path := fieldPath(c.Path)
		switch c.Op {
		case "add":
			lines = append(lines, fmt.Sprintf("+ %s: %s", path, valueText(c.New)))
		case "remove":
			lines = append(lines, fmt.Sprintf("- %s: %s", path, valueText(c.Old)))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", path, valueText(c.Old), valueText(c.New)))
		}
	}
	return lines
}

// fieldPath returns a JSON pointer as a path such as spec.containers[0].image or metadata.labels['a.b/c'].
func fieldPath(pointer string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch {
		case name != "" && strings.Trim(name, "0123456789") == "":
			b.WriteString("[" + name + "]")
		case name == "" || strings.ContainsAny(name, "./[]'"):
			b.WriteString("['" + clean(name) + "']")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(clean(name))
		}
	}
	return b.String()
}

// maxValue is how many characters of a value a line shows.
const maxValue = 80

func valueText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	text := []rune(clean(string(b)))
	if len(text) > maxValue {
		return string(text[:maxValue]) + "…"
	}
	return string(text)
}
