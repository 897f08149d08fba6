package cache_test

import (
	clientgo "k8s.io/client-go/tools/cache"
)

// handlerOf makes client-go's kind of error handler.
func handlerOf(f func(name, typeDescription string, err error)) clientgo.WatchErrorHandler {
	return func(r *clientgo.Reflector, err error) { f(r.Name(), r.TypeDescription(), err) }
}
