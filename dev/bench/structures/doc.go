// Package structures compares what a store with snapshots and indexes could be made
// of: the same work on each candidate, behind one small interface.
//
// The work is 50,000 keys, two indexes (100 and 200 values), reads by key, by index
// and of everything, updates one at a time and by 100, and a writer beside eight readers
// that iterate without pause. Every update is a state that was never there before, and
// one in ten moves its object in an index.
// Candidates whose readers see one moment are held to that; the mutable ones lock,
// or give readers whatever is there.
package structures
