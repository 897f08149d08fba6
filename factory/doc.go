// Package factory hands out informers of one cluster's resources, so that each
// resource, scope and form is mirrored once however many users it has.
//
//	f, err := factory.New(config, &factory.Options{
//		Scope: factory.Scope{Namespaces: []string{"web", "shop"}}})
//	pods, err := factory.Of[*corev1.Pod](f, nil)
//	widgets, err := f.Dynamic(widgetsResource, &factory.Scope{Labels: "tier=front"})
//	sub, err := pods.Subscribe(informer.Funcs[*corev1.Pod]{OnAdd: …}, nil)
//	err = f.Start(ctx)
//	err = f.WaitForSync(ctx)                   // its error says which ones are not, and why
//	pod, err := pods.Lister().Get("web", "nginx-0")
//	pods.Release()                             // the last user's Release ends the informer
//	err = f.Stop(stopCtx)
//
// A resource has four forms: Go types (Of), maps (Dynamic), the metadata alone
// (Metadata) and the JSON as served (Raw). ForResource chooses between the first
// two by name. All mirrors everything that discovery lists, and Refresh follows
// custom resources that come and go.
//
// What it promises:
//
//   - The same resource, scope and form is one informer with one watch. Another
//     form, another scope or another Go type is another informer.
//   - A scope of several namespaces is one informer per namespace behind one
//     handle, shared with whoever asked for that namespace alone. One informer over
//     several watches would be wrong: there is no list of several namespaces as of
//     one version, and their changes do not arrive in the order of their versions.
//     A handler on such a handle is still called for one event at a time; the order
//     holds within a namespace, and between two of them there is none.
//   - A lister answers from one whole state or says ErrNotSynced: before the sync,
//     and between a stop and the sync after the next start. What is missing in a whole state is
//     NotFound as apierrors.IsNotFound knows it, so a caller may rely on it and clean up.
//   - Release of the last user stops that informer and frees its memory; asking
//     for it again starts a new one.
//   - Stop waits for running callbacks until its context ends and names those
//     that still run then, and drops what was mirrored (P9). Handles outlive it: at the next Start they mirror
//     again, with their indexes and subscriptions, each handler beginning with the
//     initial state.
//   - Nothing is silent: what goes wrong anywhere reaches OnProblem and the log,
//     a discovery that fails for some groups included, and shows in Health.
//
// A resource without namespaces is mirrored whole, whatever namespaces the factory
// is limited to. For what Kubernetes itself serves that is known beforehand; for
// custom resources it is known after All or Refresh, and until then such a resource
// is opened with a scope of its own that names no namespace.
//
// Cached objects are shared by all: treat them as read-only.
package factory
