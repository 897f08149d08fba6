// Package access decides what a user may do in a cluster.
//
// RBAC holds the roles and bindings of one cluster and evaluates them locally, without a request to the cluster. It
// answers three questions: may a user make a request (Decide), which objects of a resource may a user see (Visible),
// and which rules apply to a user in a namespace (Rules).
//
//	r := access.NewRBAC()
//	err := r.Put(clusterRole) // and every other role and binding of the cluster
//	allowed, reason := r.Decide(u, access.Attributes{ResourceRequest: true, Verb: "list", Resource: "pods"})
//	visible := r.Visible(u, "list", "", "pods", "", true)
//
// The package promises:
//
//  1. Decide gives the decision of Kubernetes' RBAC authorizer for the same roles and bindings, and its reason. Where
//     several bindings allow a request, the authorizer names any of them, and Decide names the first: bindings are
//     ordered by name, ClusterRoleBindings before RoleBindings. RBAC is only one authorizer of an API server: others,
//     such as the one that allows everything to the group system:masters, are not part of it.
//
//  2. Nothing is allowed by default. A binding to a role that is missing allows nothing, and the reason of a refusal
//     names the missing role.
//
//  3. An object is in Visible exactly if Decide allows the verb at cluster scope, in the namespace of the object, or
//     for the name of the object. Two sets that contain the same objects are described in the same way, as far as
//     the names of namespaces and objects are known from roles and bindings alone.
//
//  4. Rules gives the rules that a SelfSubjectRulesReview has, neither merged nor simplified, in the order of Decide.
//
//  5. Version changes, and the channel of Changed is closed, with every change that can affect an answer, and only
//     with those: labels, annotations and versions of objects, roles that no binding refers to and bindings without
//     subjects change neither. A Put or Delete has taken effect when it returns.
//
//  6. An answer takes time in proportion to the bindings of the user and its groups, not to those of the cluster. All
//     methods can be called concurrently. A reader waits for at most one Put or Delete, which takes time in
//     proportion to one object and to the number of bindings that its subjects have.
//
//  7. Memory is kept for what decides, not for objects: equal sets of rules are stored once, a subject is stored once
//     for all its bindings, and no object that was passed to Put is retained.
package access
