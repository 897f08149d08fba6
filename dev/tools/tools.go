// Package tools pins the programs that the checks use in a separate module, so that none of them is in the library's
// go.mod.
package tools
