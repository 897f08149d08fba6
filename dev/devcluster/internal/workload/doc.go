// Package workload keeps a small changing workload in a cluster for demonstrations: Deployments are created, scaled,
// rolled and deleted, one step every few seconds, so that pods go from Pending to Running and are deleted.
package workload
