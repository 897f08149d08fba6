// Package reflector copies the state of a source, and then every change, into a
// sink. It recovers from any failure of the source.
//
// A reflector is a state machine with a step function. Step performs the next
// operation (open a list, read part of it, open a watch, read part of that) and
// returns how long to wait before the next step. It starts no goroutine and never
// sleeps. Run is a loop around Step, so every fault can be tested step by step.
//
//	          ┌────────────── version expired ────────────┐
//	          v                                           │
//	starting ──> listing ──────────> connecting ──> streaming
//	          └> initial state ──────────────────────^  │
//	                                    ^               │ ended, failed, silent
//	                                    └── wait ───────┘
//
// The reflector reads the state through a watch that begins with the initial state
// if the source supports that, and through a paged list otherwise. If the source
// refuses such a watch, ends it early or never sends the bookmark that completes
// the initial state, the reflector lists instead.
//
// A source that allows lists but refuses watches is polled: the reflector lists it at
// the pace of the backoff and tries to watch after each list. Health shows this as
// Polling. If the source refuses lists too, for example because credentials have
// expired, nothing is lost: the reflector resumes the watch at the version that it has
// reached as soon as it is allowed to, without a list.
//
// Promises:
//
//   - P11: Requests are spaced by a backoff with jitter, whatever the source does, and
//     only a stream that lasts resets the backoff. Retry-After is honoured. Cancelling
//     the context ends every wait at once, and no wait is endless. A watch is reopened
//     only if it has ended, has failed or has missed several bookmarks. A resource
//     that is not served is requested rarely, and read again once it is served.
//   - P12: Every failure is passed to OnProblem, counted by reason, and visible in
//     Health until the next success.
//   - P14: Health returns, at any time, the state, the version reached, when the
//     source last sent anything, the last failure and when the next attempt is due.
//   - P2: A list that is older than what was read before is rejected, unless it is the
//     newest state of the source. In that case it starts a new epoch.
//
// For each list the sink receives ReplaceBegin, the items as Replaced, and ReplaceEnd,
// or ReplaceAbort if the list failed; then Added, Updated, Deleted and Bookmark in the
// order of the watch.
package reflector
