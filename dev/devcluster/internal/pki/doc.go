// Package pki creates the certificates, keys and kubeconfigs of one cluster: its own authority, a second one to rotate
// to, the API server's serving certificate for the loopback addresses, a client certificate per component and the key
// that signs service-account tokens.
//
// [Ensure] writes every file with mode 0600, does not change a folder that already has a complete set, and replaces an
// incomplete set, which a crash during the first start leaves.
package pki
