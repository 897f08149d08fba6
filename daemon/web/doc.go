// Package web is the page of the daemon: plain HTML, CSS and JavaScript modules, embedded
// and served as they are. There is no build step and nothing comes from elsewhere.
//
// What it promises:
//
//   - The page is a client like any other. It speaks the daemon's API (/clusters, and the
//     Kubernetes API under /fleet and /clusters/{name}) and knows nothing else, so whatever
//     it shows, curl can show too.
//
//   - Nothing that a cluster says becomes markup or script. The Content-Security-Policy allows
//     no inline script or style and no other origin, and asks the browser to refuse
//     text where markup is expected; the modules write text as text.
//
//   - A daemon with a token is used from the browser as well. The page's own files have no secret in
//     them and are open; the page asks for the token in a form and sends it as Authorization with every
//     request and stream. It is in memory, and in the tab's own storage if somebody wants that: never in
//     an address, never beyond the tab.
//
//   - Addresses of assets carry a hash of all assets, so a browser may keep them for ever and
//     never mixes two versions. The page itself is asked for each time and answered by
//     304 if it is the same.
//
//   - It stays responsive: lists are read in pages of 100, only rows on the screen have
//     elements, and changes are drawn at most once a frame. What it remembers is bounded.
//
// # The modules
//
// main.js puts the page together. api.js is the only one that sends requests. The overview
// is report.js (the state of the fleet out of its changes), pipeline.js (clusters), lane.js (the
// drawing) and rates.js (events per second); the
// browser of objects is browser.js, listing.js (pages and changes), grid.js (the table), feed.js,
// namespaces.js (the picker), detail.js and yaml.js; clusters.js has the dialogs to join and leave,
// signin.js the form for the token, which token.js keeps. dom.js, format.js, route.js, theme.js and
// awake.js serve them all.
//
// The tests in a real browser are a module of their own, in browsertest.
package web
