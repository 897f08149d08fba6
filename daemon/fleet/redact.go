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

// maxText bounds what is shown of an error: a server may send any text.
const maxText = 600

// hider keeps a cluster's credentials out of texts. A server may well quote them.
type hider struct {
	secrets atomic.Pointer[strings.Replacer]

	mu    sync.Mutex
	known []string // the newest last
	// detailed shows errors of no known kind as they are. It is off for clusters that joined at run time: see fault.
	detailed bool
}

// maxSecrets is how many credentials of a cluster are known at a time. Those of before may still be quoted for a
// while.
const maxSecrets = 12

const hidden = "[hidden]"

var (
	userInURL = regexp.MustCompile(`://[^/@\s]+@`)
	bearer    = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
)

func newHider(cfg *rest.Config) *hider {
	h := &hider{}
	h.add(cfg)
	return h
}

// add hides the credentials of another config too.
func (h *hider) add(cfg *rest.Config) {
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

// text makes a text fit to be shown: no secrets, one line, not too long.
func (h *hider) text(s string) string {
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

// cleanError is an error whose text can be shown.
type cleanError struct {
	text string
	err  error
}

// Error gives the text.
func (e *cleanError) Error() string { return e.text }

// Unwrap gives the error as it was, for errors.Is and As.
func (e *cleanError) Unwrap() error { return e.err }

func (h *hider) error(err error) error {
	if err == nil {
		return nil
	}
	return &cleanError{h.text(err.Error()), err}
}

// logger is a logger that shows nothing that is hidden.
func (h *hider) logger(to *slog.Logger) *slog.Logger {
	return slog.New(&cleanHandler{to.Handler(), h})
}

type cleanHandler struct {
	slog.Handler
	hide *hider
}

// Handle hands a record on, cleaned.
func (c *cleanHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, c.hide.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(c.attr(a))
		return true
	})
	return c.Handler.Handle(ctx, out)
}

// WithAttrs keeps the attributes cleaned.
func (c *cleanHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = c.attr(a)
	}
	return &cleanHandler{c.Handler.WithAttrs(clean), c.hide}
}

// WithGroup keeps cleaning.
func (c *cleanHandler) WithGroup(name string) slog.Handler {
	return &cleanHandler{c.Handler.WithGroup(name), c.hide}
}

func (c *cleanHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindString {
		return slog.String(a.Key, c.hide.text(v.String()))
	}
	if err, ok := v.Any().(error); ok {
		return slog.String(a.Key, c.hide.text(err.Error()))
	}
	return a
}
