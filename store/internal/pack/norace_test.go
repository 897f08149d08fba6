//go:build !race

package pack

const poolMisses = 0 // allocations that a pool may cause
