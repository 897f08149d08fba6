package supervisor

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"regexp"
	"strings"
)

const (
	tailBytes = 64 << 10
	tailLines = 5
	maxLine   = 300
)

// reasonLine matches the lines in which Go programs, klog, cobra and etcd log why they end. Goroutine traces and
// shutdown messages follow them.
var reasonLine = regexp.MustCompile(`^(panic:|fatal error:|F\d{4} |Error: |etcd: |kwok: )|"command failed"`)

// lastLines returns the few lines of a log that best explain why its process ended: from the last reason on if there
// is one near the end, otherwise the last lines.
func lastLines(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	b, _ := io.ReadAll(f)
	var lines []string
	reason := -1
	for l := range bytes.Lines(b) {
		line := strings.TrimSpace(string(l))
		if line == "" {
			continue
		}
		if reasonLine.MatchString(line) {
			reason = len(lines)
		}
		if len(line) > maxLine {
			line = line[:maxLine] + "…"
		}
		lines = append(lines, line)
	}
	if reason >= 0 {
		return lines[reason:min(len(lines), reason+tailLines)]
	}
	return lines[max(0, len(lines)-tailLines):]
}

// randomSuffix makes the name of a temporary folder unique.
func randomSuffix() string { return strings.ToLower(rand.Text()[:10]) }
