// Package browsertest opens the daemon's page in Chromium and looks at what a person would see: over the
// daemon itself on a real cluster, and, for what a real one cannot be made to do at will, over a fake of
// the API. The modules' own tests, in ../unit, run there too. It is a module of its own because nobody who
// uses Mirador as a library needs a browser's protocol.
//
// It needs Chromium on the machine, and bin/devcluster. With SHOTS=folder in the environment it keeps
// pictures of what it looks at; the command shots takes those of the README.
package browsertest
