// Package pki makes the certificates, keys and kubeconfigs of one cluster: its
// own authority, a second one to rotate to, the API server's serving certificate for the loopback
// addresses, a client certificate per component and the key that signs
// service-account tokens.
//
// [Ensure] promises that every file it writes has mode 0600, that a folder
// which already holds a complete set is left as it is, and that an incomplete
// set (a crash in the middle of the first start) is made anew.
package pki
