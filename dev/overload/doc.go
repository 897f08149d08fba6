// Command overload measures how one slow handler affects the others. Objects change 5,000 times per second; some
// handlers return at once, one takes 10 ms for an event, fifty times more than it has. What must hold:
//
//   - The backlog of the slow handler is bounded: past its limit it is coalesced to the latest state of each object,
//     and every event is either delivered or counted as coalesced.
//   - The slow handler ends with the latest state of every object.
//   - The others receive every event, in order, as without the slow handler.
//
// `make overload` measures it in real time, with and without the slow handler; the package's test runs the same in fake
// time, where the figures are exact.
package main
