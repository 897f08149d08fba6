package cache_test

import (
	clientgo "k8s.io/client-go/tools/cache"
)

// handlerOf returns an error handler of client-go's type.
func handlerOf(f func(name, typeDescription string, err error)) clientgo.WatchErrorHandler {
	return func(r *clientgo.Reflector, err error) { f(r.Name(), r.TypeDescription(), err) }
}
