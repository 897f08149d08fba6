// Package tools pins, in a module of its own, the programs that the checks use,
// so that none of them is in the library's go.mod.
package tools
