package object

import "strings"

// Key names an object within one resource: "namespace/name", or "name" alone
// where there is no namespace. Callers with other names may use any string; only NewKey and Split interpret the slash.
type Key string

// NewKey joins a namespace and a name. An empty namespace leaves the name alone.
func NewKey(namespace, name string) Key {
	if namespace == "" {
		return Key(name)
	}
	return Key(namespace + "/" + name)
}

// Split splits a key at its first slash. A key without a slash has no namespace.
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
