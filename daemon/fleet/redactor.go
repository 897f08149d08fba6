package fleet

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/rest"
)

// maxText bounds the text of an error, because a server may send any text.
const maxText = 600

// redactor removes a cluster's credentials from texts. A server may quote them in an error.
type redactor struct {
	secrets atomic.Pointer[strings.Replacer]

	mu    sync.Mutex
	known []string // the newest last
	// detailed keeps the text of errors of unknown kind. It is on only for clusters of the operator; see requestError.
	detailed bool
}

// maxSecrets is how many credentials of a cluster are redacted. A server may quote earlier ones for a while.
const maxSecrets = 12

const hidden = "[hidden]"

var (
	userInURL = regexp.MustCompile(`://[^/@\s]+@`)
	bearer    = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
)

func newRedactor(cfg *rest.Config) *redactor {
	h := &redactor{}
	h.add(cfg)
	return h
}

// add redacts the credentials of another config too.
func (h *redactor) add(cfg *rest.Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range []string{cfg.BearerToken, cfg.Password, string(cfg.KeyData)} {
		if len(s) > 3 && !slices.Contains(h.known, s) {
			h.known = append(h.known, s)
		}
	}
	h.known = slices.Clone(h.known[max(0, len(h.known)-maxSecrets):])
	var pairs []string
	for _, s := range h.known {
		pairs = append(pairs, s, hidden)
	}
	h.secrets.Store(strings.NewReplacer(pairs...))
}

// text returns a text without secrets, in one line and of bounded length.
func (h *redactor) text(s string) string {
	s = h.secrets.Load().Replace(s)
	s = userInURL.ReplaceAllString(s, "://"+hidden+"@")
	s = bearer.ReplaceAllString(s, "$1 "+hidden)
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// cleanError is an error with a redacted text.
type cleanError struct {
	text string
	err  error
}

// Error returns the redacted text.
func (e *cleanError) Error() string { return e.text }

// Unwrap returns the original error, for errors.Is and errors.As.
func (e *cleanError) Unwrap() error { return e.err }

func (h *redactor) error(err error) error {
	if err == nil {
		return nil
	}
	return &cleanError{h.text(err.Error()), err}
}

// logger returns a logger that redacts its records.
func (h *redactor) logger(to *slog.Logger) *slog.Logger {
	return slog.New(&cleanHandler{to.Handler(), h})
}

type cleanHandler struct {
	slog.Handler
	redact *redactor
}

// Handle redacts a record and passes it on.
func (c *cleanHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, c.redact.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(c.attr(a))
		return true
	})
	return c.Handler.Handle(ctx, out)
}

// WithAttrs redacts the attributes.
func (c *cleanHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = c.attr(a)
	}
	return &cleanHandler{c.Handler.WithAttrs(clean), c.redact}
}

// WithGroup returns a handler that also redacts.
func (c *cleanHandler) WithGroup(name string) slog.Handler {
	return &cleanHandler{c.Handler.WithGroup(name), c.redact}
}

func (c *cleanHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindString {
		return slog.String(a.Key, c.redact.text(v.String()))
	}
	if err, ok := v.Any().(error); ok {
		return slog.String(a.Key, c.redact.text(err.Error()))
	}
	return a
}
