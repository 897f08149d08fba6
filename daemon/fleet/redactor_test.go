package fleet

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/rest"
)

func TestRedactedTextContainsNoCredentials(t *testing.T) {
	h := newRedactor(&rest.Config{BearerToken: "hunter2-token", Password: "hunter2-password",
		TLSClientConfig: rest.TLSClientConfig{KeyData: []byte("hunter2-key")}})
	for _, text := range []string{
		"401: bad token hunter2-token", "hunter2-password", "x hunter2-key y", "get https://me:hunter2@192.0.2.1/x: refused",
		"you sent Authorization: Bearer hunter2-from-a-plugin", "basic aHVudGVyMg==hunter2",
	} {
		if got := h.text(text); strings.Contains(got, "hunter2") || !strings.Contains(got, hidden) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := h.text("a\nb\x00c\x1b[31m\xff"); strings.ContainsAny(got, "\n\x00\x1b") || !utf8.ValidString(got) {
		t.Errorf("control characters are left: %q", got)
	}
	if got := h.text(strings.Repeat("ä", 10_000)); len(got) > maxText+10 {
		t.Errorf("a text of %d bytes is left", len(got))
	}
	if got := newRedactor(&rest.Config{}).text("nothing to hide"); got != "nothing to hide" {
		t.Errorf("became %q", got)
	}
	if err := h.error(io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) || h.error(nil) != nil {
		t.Error("a clean error is not the error that it was")
	}
}

func TestLogContainsNoCredentials(t *testing.T) {
	var out strings.Builder
	h := newRedactor(&rest.Config{BearerToken: "hunter2"})
	log := h.logger(slog.New(slog.NewTextHandler(&out, nil))).With("a", "hunter2").WithGroup("g")
	log.Warn("said hunter2", "error", errors.New("hunter2"), "text", "hunter2", "n", 7)
	if got := out.String(); strings.Contains(got, "hunter2") || strings.Count(got, hidden) != 4 ||
		!strings.Contains(got, "n=7") {
		t.Errorf("logged: %s", got)
	}
}
