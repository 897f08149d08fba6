package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// errWatchPast is the error for a watch of a moment.
func errWatchPast() error {
	return badRequest("a watch has no at=: the past does not change; list it, or watch without at=")
}

// parseMoment parses a time of a request: RFC 3339, or a duration before now such as -15m, -36h or -7d.
func parseMoment(parameter, text string, now time.Time) (time.Time, error) {
	if before, ok := strings.CutPrefix(text, "-"); ok {
		if d, ok := parseAge(before); ok {
			return now.Add(-d), nil
		}
	} else {
		// A plus in a query is a space unless it is escaped.
		if t, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(text, " ", "+")); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, badRequest("%s is a time such as 2026-11-17T10:00:00Z, or a duration before now such as -15m or "+
		"-2d, not %q", parameter, clip(text))
}

// parseAge parses a duration of package time, with days in front if there are any.
func parseAge(text string) (time.Duration, bool) {
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= 0
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, false
	}
	d := time.Duration(0)
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, false
		}
	}
	return time.Duration(n)*24*time.Hour + d, true
}

// cutMoment splits a segment of a path such as eu@2026-11-17T10:00:00Z.
func cutMoment(segment string) (name, at string) {
	name, at, _ = strings.Cut(segment, "@")
	return name, at
}

// resolveMoment sets the moment that a request is about: that of at= or of the path.
func (req *request) resolveMoment(query string) error {
	parameter, text := "at=", query
	if req.target.at != "" {
		if query != "" {
			return badRequest("the path has a time, and so has at=; leave one of them out")
		}
		parameter, text = "the time in the path", req.target.at
	}
	if text == "" {
		return nil
	}
	var err error
	if req.moment, err = parseMoment(parameter, text, time.Now()); err != nil {
		return err
	}
	req.momentText = text
	if req.Continue != "" && req.verb == "list" && !req.changes {
		first, _ := cutRestartToken(req.Continue)
		if _, req.moment, err = splitPastToken(first); err != nil {
			return err
		}
	}
	switch {
	case req.verb == "watch":
		return errWatchPast()
	case !req.fromNow():
		return badRequest("resourceVersion= and at= do not go together; leave one of them out")
	}
	return nil
}

// isPast reports whether a request is about a moment.
func (req *request) isPast() bool { return !req.moment.IsZero() }

// momentHeader and gapHeader say which moment an answer shows, and in which gap of the history it is.
const (
	momentHeader = "Mirador-At"
	gapHeader    = "Mirador-Gap"
)

// momentText formats a time for headers and documents.
func momentText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// gapText formats a gap as an interval of ISO 8601.
func gapText(g *fleet.Gap) string {
	to := ".."
	if !g.To.IsZero() {
		to = momentText(g.To)
	}
	return momentText(g.From) + "/" + to
}

// gapWarning says that changes before a moment may be missing.
func gapWarning(cluster, resource string, g *fleet.Gap) string {
	text := fmt.Sprintf("changes of %s of cluster %s were not seen from %s", resource, cluster, momentText(g.From))
	if g.To.IsZero() {
		return text + " on: this may be out of date"
	}
	return fmt.Sprintf("%s to %s: this may be out of date", text, momentText(g.To))
}
