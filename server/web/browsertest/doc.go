// Package browsertest opens the daemon's page in Chromium, over a fake of the API, and looks
// at what a person would see. It is a module of its own because nobody who uses Mirador
// as a library needs a browser's protocol.
//
// It needs Chromium on the machine. With SHOTS=folder in the environment it keeps pictures of
// the page in light, dark and on a phone.
package browsertest
