// Package fakeapi is the daemon's API as the page sees it, without a daemon: two clusters of 60
// resources, one of them with tens of thousands of pods that are made when they are asked
// for. Tests change it and watch the page follow.
//
// It keeps to the API's rules where the page depends on them: pages stay on the version of
// their first one, a watch goes on from a version without a gap, an object that leaves a
// selection is deleted for its watchers, and errors are Status objects.
package fakeapi
