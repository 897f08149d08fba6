package fleet

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/rest"
)

// maxText bounds what is shown of an error: a server may send any text.
const maxText = 600

// hider keeps a cluster's credentials out of texts. A server may well quote them.
type hider struct {
	secrets *strings.Replacer
	// detailed shows errors of no known kind as they are. It is off for clusters that joined at run time: see fault.
	detailed bool
}

const hidden = "[hidden]"

var (
	userInURL = regexp.MustCompile(`://[^/@\s]+@`)
	bearer    = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
)

func newHider(cfg *rest.Config) *hider {
	var pairs []string
	for _, s := range []string{cfg.BearerToken, cfg.Password, string(cfg.KeyData)} {
		if len(s) > 3 {
			pairs = append(pairs, s, hidden)
		}
	}
	return &hider{secrets: strings.NewReplacer(pairs...)}
}

// text makes a text fit to be shown: no secrets, one line, not too long.
func (h *hider) text(s string) string {
	s = h.secrets.Replace(s)
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
