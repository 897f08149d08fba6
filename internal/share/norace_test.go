//go:build !race

package share

// UnderRace reports whether the race detector is on.
const UnderRace = false
