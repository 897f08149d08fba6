// Package browsertest opens the daemon's page in Chromium and checks what a user would see: with the daemon itself on
// a real cluster, and, for states that a real one cannot be brought into, with a fake of the API. The modules' own
// tests, in ../unit, run in the browser too. It is a separate module, so that the library does not depend on the
// browser's protocol.
//
// It needs Chromium on the machine, and bin/devcluster. With SHOTS=folder in the environment it saves pictures of what
// it checks; the command shots takes those of the README.
package browsertest
