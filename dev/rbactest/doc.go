// Package rbactest compares the RBAC evaluation of package access with Kubernetes' own RBAC authorizer and with a real
// API server. It is a module of its own, because it needs the module of Kubernetes, and devcluster must not depend on
// the code that is tested. It has no code besides tests.
package rbactest
