//go:build race

package pack

// The race detector makes sync.Pool forget on purpose.
const poolMisses = 12
