// Package reflector drives a source into a queue: it lists, then follows the
// changes, and keeps doing so whatever the source does.
//
// It is a state machine with a step function. Step does the next thing there is
// to do (open a list, read some of it, open a watch, read some of that) and says
// how long to wait before the next; it starts no goroutine and never sleeps. Run
// is nothing but a loop around it, so every fault can be tested by stepping.
//
//	          ┌────────────── lost its place ─────────────┐
//	          v                                           │
//	starting ──> listing ──────────> connecting ──> streaming
//	          └> initial stream ─────────────────────^  │
//	                                    ^               │ ended, failed, silent
//	                                    └── wait ───────┘
//
// How it gets the state: by a watch with initial state where the source can do
// that, by a paged list otherwise. A source that refuses the former, ends it
// early or never closes it with its bookmark is listed instead.
//
// A source that may be listed and refuses to be watched, because of rights or because it
// cannot, is polled: listed again and again at the pace of the backoff, each time with
// another try to watch it. Health says so. A source that refuses lists too, as in an outage of
// credentials, loses nothing: the watch goes on where it was, without a list, once it is allowed
// again.
//
// What it promises:
//
//   - P11: whatever the source does, requests are spaced by a backoff with jitter
//     that only a living stream resets; what the source asks for with Retry-After
//     is honoured; cancelling the context ends every wait at once; no wait is
//     endless. A watch is reopened when it has ended, has failed or has missed several
//     bookmarks, and for no other reason. A resource that is not served is asked for rarely and picked up
//     again when it is back.
//   - P12: every failure reaches OnProblem, is counted by reason, and shows in
//     Health until the next success.
//   - P14: Health tells at any time the state, the version reached, when the
//     source last said anything, what failed last and when the next try is due.
//   - P2: a list that is older than what was already seen is not believed unless it
//     is the newest state that the source has; then it starts a new epoch.
//
// What goes into the queue: ReplaceBegin, the items, ReplaceEnd for each list
// (ReplaceAbort if it failed half way), then Added, Updated, Deleted and Bookmark
// as they come.
package reflector
