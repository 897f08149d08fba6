//go:build race

package share

// UnderRace makes tests take fewer objects: they use one goroutine, so what the race detector adds is only the check
// of every unsafe pointer.
const UnderRace = true
