// Package harness runs measurements side by side: each trial in a process of its
// own so that heaps do not mix, the sides alternating, repeated, and summed up as
// medians with their spread; a ratio is the median of those of the rounds.
//
// A [Case] has variants, one for each side or layout, and rows that compare two of
// them. The parent process starts itself again for each trial with the case and
// the variant to run; the child prints its figures as one line of JSON. All cases
// are run once before any is run again, so that whatever else the machine does
// spreads over all of them, and when the time is up what has been measured counts.
//
// What comes out is a table, results.json, a page with plots, and a comparison
// with the recorded results.json.
package harness
