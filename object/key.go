package object

import "strings"

// Key names an object within one resource: "namespace/name", or "name" alone
// where there is no namespace. A caller with another way of naming things may
// use any string; only NewKey and Split give the slash a meaning.
type Key string

// NewKey joins a namespace and a name. An empty namespace leaves the name alone.
func NewKey(namespace, name string) Key {
	if namespace == "" {
		return Key(name)
	}
	return Key(namespace + "/" + name)
}

// Split takes a key apart at its first slash. A key without one has no namespace.
func (k Key) Split() (namespace, name string) {
	if ns, n, ok := strings.Cut(string(k), "/"); ok {
		return ns, n
	}
	return "", string(k)
}

// Namespace is the part of the key before the slash, or "".
func (k Key) Namespace() string {
	ns, _ := k.Split()
	return ns
}

// Name is the part of the key after the slash, or all of it.
func (k Key) Name() string {
	_, n := k.Split()
	return n
}
