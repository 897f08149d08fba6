// Package house holds the rules of the house as tests: who may import whom, and
// why. It has no code of its own.
package house
