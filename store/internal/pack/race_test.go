//go:build race

package pack

// The race detector makes packing twenty times slower, and sync.Pool forget on purpose.
const (
	manyTemplates = 500
	manyPods      = 1500
	poolMisses    = 12
)

var budgets = []budget{
	{protobuf, 20, 1000, 156, 443},
	{jsonText, 20, 1000, 116, 545},
}
