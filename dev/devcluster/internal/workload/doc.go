// Package workload keeps a small living workload in a cluster, for people who
// want to see something happen: Deployments are created, scaled, rolled and
// deleted, one step every few seconds, so that pods go from Pending to Running
// and away.
package workload
