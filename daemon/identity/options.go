package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// ClusterExtra is the key of a user's extra values that has the name of the cluster whose TokenReview authenticated
// the user. A service account is known to that cluster only, and others may have an unrelated one of that name.
const ClusterExtra = "mirador.dev/cluster"

// Options select the authenticators. A field that is empty adds none.
type Options struct {
	// TokenAuthFile is a CSV file of tokens with the columns token, user name, user ID and, optionally, groups:
	//
	//	31ada4fd-adec-460c-809a-9e56ceb75269,alice,1001,"developers,oncall"
	TokenAuthFile string
	// ClientCAFile has the certificates, in PEM, of the authorities whose client certificates are accepted.
	ClientCAFile string
	// AuthenticationConfig is a file with an AuthenticationConfiguration of apiserver.config.k8s.io, which names OIDC
	// issuers. Its field anonymous and the egress selectors of its issuers are ignored.
	AuthenticationConfig string
	// RequestHeader describes a front proxy that authenticates users and names them in headers.
	RequestHeader RequestHeader
	// TokenReview asks a cluster for the user of a token that no other authenticator knows.
	TokenReview TokenReview
	// Logger receives what happens to files and issuers. The default discards it.
	Logger *slog.Logger
}

// RequestHeader describes a front proxy, which is recognized by its client certificate. Without that certificate the
// headers are ignored.
type RequestHeader struct {
	// ClientCAFile has the certificates, in PEM, of the authorities of the proxy's certificate. "" means that there is
	// no proxy.
	ClientCAFile string
	// AllowedNames are the common names that the proxy's certificate may have. If there are none, every certificate of
	// the authorities is accepted.
	AllowedNames []string
	// UsernameHeaders are the headers for the user's name; the first that is present counts. The default is
	// X-Remote-User.
	UsernameHeaders []string
	// UIDHeaders are the headers for the user's ID; the first that is present counts.
	UIDHeaders []string
	// GroupHeaders are the headers for the user's groups, one group in each header line.
	GroupHeaders []string
	// ExtraHeaderPrefixes begin the names of headers for other values; the rest of the name is their key.
	ExtraHeaderPrefixes []string
}

// TokenReview asks a cluster for the user of a token. The cluster is trusted to name any user.
type TokenReview struct {
	// Cluster is the name of the cluster, which becomes the ClusterExtra of its users.
	Cluster string
	// Audiences are what a token must be meant for, one of them at least. If there are none, a token must be meant for
	// the API server of the cluster.
	Audiences []string
	// Review sends the review. nil means that no cluster is asked.
	Review func(context.Context, authenticationv1.TokenReviewSpec) (authenticationv1.TokenReviewStatus, error)
}

// Any reports whether the options select an authenticator.
func (o *Options) Any() bool {
	return o.TokenAuthFile != "" || o.UsesCertificates() || o.AuthenticationConfig != "" ||
		o.TokenReview.Review != nil
}

// UsesCertificates reports whether the options select an authenticator that needs client certificates, and thus TLS.
func (o *Options) UsesCertificates() bool {
	return o.ClientCAFile != "" || o.RequestHeader.ClientCAFile != ""
}

// complete checks the description of a front proxy and fills in the default.
func (h *RequestHeader) complete() error {
	if h.ClientCAFile == "" {
		if len(slices.Concat(h.AllowedNames, h.UsernameHeaders, h.UIDHeaders, h.GroupHeaders,
			h.ExtraHeaderPrefixes)) > 0 {
			return errors.New("the headers of a front proxy need the authority of its certificate; name its file, or " +
				"leave out the names and headers")
		}
		return nil
	}
	if len(h.UsernameHeaders) == 0 {
		h.UsernameHeaders = []string{"X-Remote-User"}
	}
	if slices.ContainsFunc(h.AllowedNames, func(name string) bool { return strings.TrimSpace(name) == "" }) {
		return errors.New("the allowed names of the front proxy contain an empty name; remove it")
	}
	for _, name := range slices.Concat(h.UsernameHeaders, h.UIDHeaders, h.GroupHeaders, h.ExtraHeaderPrefixes) {
		if !isHeaderName(name) {
			return fmt.Errorf("the headers of the front proxy contain %q, which is not the name of a header", name)
		}
		if slices.Contains([]string{"Authorization", "Sec-Websocket-Protocol"}, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("the headers of the front proxy contain %q, which has tokens; use another header", name)
		}
	}
	return nil
}

func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
