// Package informers is client-go's informers over our engine: NewSharedInformerFactory
// and its options, returning client-go's own SharedInformerFactory interface, whose
// every informer is ours. Change the import and nothing else.
//
//	factory := informers.NewSharedInformerFactory(clientset, 0)
//	pods := factory.Core().V1().Pods()
//	pods.Informer().AddEventHandler(…)
//	factory.Start(ctx.Done())
//	factory.WaitForCacheSync(ctx.Done())
//	list, err := pods.Lister().Pods("default").List(labels.Everything())
//
// The accessors (Core().V1().Pods() and all others) are generated from client-go's
// by gen.go, because client-go's own build client-go's informers. They take a real
// clientset as well as the fake one. Listers are client-go's: they read any Indexer.
//
// InformerFor takes the caller's own constructor, as in client-go; the first one
// asked for a type decides.
package informers

//go:generate go run gen.go
