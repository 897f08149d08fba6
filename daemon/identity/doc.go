// Package identity determines which user sends a request to the daemon.
//
// It runs the authenticators of kube-apiserver (k8s.io/apiserver) in kube-apiserver's order:
//
//  1. the headers of a front proxy, if the proxy shows a client certificate of its own authority;
//  2. client certificates: the common name is the user, the organizations are the groups;
//  3. bearer tokens, in the Authorization header or in a subprotocol of a WebSocket: static tokens, JSON Web
//     Tokens of OIDC issuers, and at last a TokenReview of a cluster.
//
// The first authenticator that accepts the request decides, and the errors of the others do not matter: a request with
// a valid certificate and an invalid token is a request of the certificate's user, and a request with a valid token is
// one of the token's user even if its certificate is from an unknown authority. If no authenticator accepts the
// request, it is not authenticated. The package never returns the anonymous user.
//
// Names and groups that begin with "mirador:" are reserved for the daemon's own users, such as that of its single
// token, which the server knows. An identity that has one is refused.
//
// A request without a valid credential costs little. Tokens are compared by hash. A token is sent to no issuer, and to
// a cluster only if no configured issuer made it; those reviews are limited and their results are cached for seconds.
// A token with a wrong signature can make an issuer's keys be fetched, at most once a second.
//
// Files are read when the Authenticator is made, and again when they change while Run runs. A file that cannot be used
// is an error of New; later it is logged, and what was read before stays in use. Errors and log lines contain no
// tokens.
package identity
