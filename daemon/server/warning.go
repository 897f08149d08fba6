package server

import (
	"net/http"
	"strings"
	"unicode"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// warn adds a warning to an answer, which kubectl and client-go show to their users.
func warn(w http.ResponseWriter, text string) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if header, err := utilnet.NewWarningHeader(299, "mirador", text); err == nil {
		w.Header().Add("Warning", header)
	}
}

// maxReason is how much of an error a warning or an answer about several clusters shows.
const maxReason = 200

// short cuts a text that others have written.
func short(text string) string {
	if len(text) > maxReason {
		return strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
