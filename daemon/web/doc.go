// Package web is the page of the daemon: plain HTML, CSS and JavaScript modules, embedded and served unchanged. There
// is no build step, and nothing is loaded from other servers.
//
// The package promises:
//
//   - The page is a client like any other. It uses only the daemon's API (/clusters, and the Kubernetes API under
//     /fleet and /clusters/{name}), so whatever it shows, curl can show too.
//
//   - Nothing from a cluster becomes markup or script. The Content-Security-Policy allows no inline script or style
//     and no other origin, and makes the browser refuse text where markup is expected; the modules write text as text.
//
//   - A daemon with users can be used from the browser. The files of the page contain no secret and need no user. The
//     page sends the user to an OIDC issuer, if the daemon has one for it; then the browser has the cookie of a
//     session, which no script can read. Or it asks for a token and sends it as Authorization with every request and
//     stream. The token is in memory, and in the tab's session storage if the user wants that, but never in a URL or
//     in another tab.
//
//   - URLs of assets contain a hash of all assets, so a browser may keep them forever and never mixes two versions.
//     The page itself is revalidated each time, with 304 if it is the same.
//
//   - It stays responsive: lists are read in pages of 100, only rows on the screen have elements, and changes are
//     drawn at most once per frame. Its memory is bounded.
//
// # The modules
//
// main.js connects the parts of the page. api.js is the only one that sends requests. The overview is report.js (the
// state of the fleet, from its changes), pipeline.js (clusters), lane.js (the drawing) and rates.js (events per
// second). The object browser is browser.js, listing.js (pages and changes), grid.js (the table), feed.js (recent
// changes), namespaces.js (the picker), detail.js and yaml.js. The past is timebar.js (the control of the moment),
// timeline.js (its slider), versions.js (the history of an object), diff.js (two texts side by side), changes.js (what
// changed) and moment.js (times). clusters.js has the dialogs to join and leave, signin.js the form for users that are
// not logged in, and account.js shows who the user is. token.js keeps a token, and session.js knows the browser's
// session. dom.js, format.js, route.js, theme.js and awake.js are used by all.
//
// The tests in a real browser are a module of their own, dev/browsertest.
package web
