// Package login logs users of the page in at an OIDC issuer, by the authorization code flow with PKCE.
//
// The daemon is the client of the issuer. It keeps the tokens that the issuer gives in memory, and the browser gets a
// cookie with a random session ID, which JavaScript cannot read. A request with that cookie is authenticated by the
// ID token of its session, exactly as if the request had it as a bearer token: the same authenticator verifies it each
// time, so a user has the same name and groups, and claim rules, expiry and changed configurations count the same.
//
// The package promises:
//
//   - Tokens, client secrets and code verifiers are in no cookie, URL, answer or log.
//
//   - A login is completed only by the browser that started it, once, within ten minutes. Its state, nonce and code
//     verifier cannot be guessed.
//
//   - Redirects lead to two places: the issuer's authorization endpoint, and the page. No parameter changes that.
//
//   - A cookie counts only in requests of the page itself. A browser does not send it for pages of other sites, and
//     requests of pages of other origins are not authenticated by it.
//
//   - Memory is bounded: sessions, sessions of one user, and completed logins. A login that has only begun takes none,
//     so no number of them stops another.
//
// A session ends when the user logs out, when its ID token has expired and the issuer gives no other one for the
// refresh token, after a day, and when the daemon ends.
package login
