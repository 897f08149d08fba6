// Package harness runs measurements side by side: each trial runs in its own process so that heaps do not mix, the
// sides alternate, and repetitions are summarised as medians with their spread; a ratio is the median of the ratios of
// the rounds.
//
// A [Case] has variants, one for each side or layout, and rows that compare two of them. The parent process starts
// itself again for each trial with the case and the variant to run; the child prints its figures as one line of JSON.
// All cases run once before any is repeated, so that other load on the machine affects all of them alike, and when the
// time is up the measurements made so far count.
//
// The results are a table, results.json, a page with plots, and a comparison with the recorded results.json.
package harness
