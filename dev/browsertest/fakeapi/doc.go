// Package fakeapi is a fake of the daemon's API for the page: two clusters of 60 resources, one of them with tens of
// thousands of pods that are made on request. Tests change it and check that the page follows.
//
// It keeps the API's rules on which the page depends: pages stay at the version of the first one, a watch continues
// from a version without a gap, what is read at a moment is what was there then, an object that leaves a selection is
// deleted for its watches, and errors are Status objects.
package fakeapi
