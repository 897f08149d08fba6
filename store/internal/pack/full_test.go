//go:build !race

package pack

// Sizes of tests, and what they measured.
const (
	manyTemplates = 10_000
	manyPods      = 30_000
	poolMisses    = 0 // allocations that a pool may cause
)

var budgets = []budget{
	{protobuf, 200, 20_000, 158, 245},
	{jsonText, 200, 20_000, 118, 204},
	{protobuf, 1000, 10_000, 148, 462},
}
