// Package factory shares informers of one cluster between users: each resource, scope and form is mirrored once,
// however many users it has.
//
//	f, err := factory.New(config, &factory.Options{
//		Scope: factory.Scope{Namespaces: []string{"web", "shop"}}})
//	pods, err := factory.Of[*corev1.Pod](f, nil)
//	widgets, err := f.Dynamic(widgetsResource, &factory.Scope{Labels: "tier=front"})
//	sub, err := pods.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: …}, nil)
//	err = f.Start(ctx)
//	err = f.WaitForSync(ctx)                   // its error says which informers are not synced, and why
//	pod, err := pods.Lister().Get("web", "nginx-0")
//	pods.Release()                             // the Release of the last user stops the informer
//	err = f.Stop(stopCtx)
//
// A resource has four forms: Go types (Of), maps (Dynamic), only the metadata (Metadata) and the JSON as served (Raw).
// ForResource opens a resource by name, as Go types or maps. All mirrors everything that discovery lists, and Refresh
// follows custom resources that are installed and removed.
//
// What it promises:
//
//   - The same resource, scope and form is one informer with one watch. Another form, another scope or another Go type
//     is another informer.
//   - A scope of several namespaces is one informer per namespace behind one handle, shared with the users of that
//     namespace alone. One informer over several watches would be wrong: there is no list of several namespaces at one
//     version, and their changes do not arrive in the order of their versions. A handler on such a handle is still
//     called for one event at a time; events are ordered within a namespace, and not between namespaces.
//   - A lister reads a complete state or returns ErrNotSynced: before the sync, and between a stop and the sync after
//     the next start. An object that is missing in a complete state is NotFound in the sense of apierrors.IsNotFound,
//     so a caller may rely on it and clean up.
//   - Release of the last user stops the informer and frees its memory; opening the resource again starts a new one.
//   - Stop waits for running callbacks until its context ends, names those that still run then, and drops the mirrored
//     objects (P9). Handles stay valid: the next Start mirrors again, with their indexes and subscriptions, and each
//     handler receives the initial state again.
//   - Every failure is passed to OnProblem, logged and visible in Health, including a discovery that fails for some
//     groups.
//
// A cluster-scoped resource is mirrored whole, whatever namespaces the factory's scope has. The factory knows which
// resources of Kubernetes itself are cluster-scoped. It learns about custom resources from All and Refresh; before
// that, a cluster-scoped custom resource must be opened with a scope of its own without namespaces.
//
// Stored objects are shared by all readers: treat them as read-only.
package factory
