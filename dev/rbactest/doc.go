// Package rbactest compares package access with Kubernetes' own RBAC authorizer. It is a module of its own, because
// it needs the module of Kubernetes, and devcluster must not depend on the code that is tested. It has no code besides
// tests.
package rbactest
