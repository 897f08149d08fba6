// Package disk keeps the mirror of a fleet in a folder: the newest state of every object, and earlier ones.
package disk
