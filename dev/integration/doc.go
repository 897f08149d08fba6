// Package integration tests compat with other software on a real cluster: a controller-runtime manager whose caches
// are ours, and a stock client-go factory that serves its generated listers from an informer of ours. It is a separate
// module, so that controller-runtime stays out of the library's go.mod.
package integration
