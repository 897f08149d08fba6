package share

import (
	"reflect"
	"strings"
)

// identity reports whether values of t count by identity: what they refer to is
// neither looked into nor copied nor shared. A value that must not be copied, such as a
// lock, makes whatever leads to it count by identity.
func identity(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Pointer:
		return opaque(t.Elem()) || pinned(t.Elem())
	case reflect.Slice:
		return pinned(t.Elem())
	case reflect.Map:
		return pinned(t.Elem()) || !plainKey(t.Key())
	case reflect.Struct:
		return opaque(t)
	}
	return false
}

// pinned reports whether the memory of a value of t itself holds something that
// must stay where it is.
func pinned(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return pinned(t.Elem()) // of any length: arrays of no locks are a sign for vet
	case reflect.Struct:
		if opaque(t) {
			return !handle(t)
		}
		for i := range t.NumField() {
			if pinned(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// transparent are the packages of the standard library whose types are plain data.
// Any other struct of it may be a lock, a cache, or something the runtime knows by its
// address (a type, a time zone, a unique handle).
var transparent = map[string]bool{
	"encoding/json": true, "math/big": true, "net": true, "net/url": true, "time": true,
}

// opaque reports whether t is a struct of the standard library that is not plain data.
func opaque(t reflect.Type) bool {
	pkg := t.PkgPath()
	if t.Kind() != reflect.Struct || pkg == "" {
		return false
	}
	if pkg == "time" {
		return t.Name() != "Time" // a time zone is known by its address, a timer by the runtime
	}
	if transparent[pkg] || pkg == "main" || strings.Contains(pkg, ".") {
		return false
	}
	return standard(pkg)
}

// handle reports whether t is an opaque struct that may be copied.
func handle(t reflect.Type) bool {
	return t.PkgPath() == "unique" || t.PkgPath() == "weak"
}

// standard reports whether pkg looks like one of the standard library: the first part
// of any other path has a dot in it, unless a module was given a bare name.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	switch first {
	case "archive", "bufio", "bytes", "compress", "container", "context", "crypto", "database", "debug", "embed",
		"encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter",
		"log", "maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort",
		"strconv", "strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode", "unique", "unsafe", "weak":
		return true
	}
	return false
}

// plainKey reports whether two keys of type t are one key of a map exactly if their
// bits and strings are the same: not so for floats (NaN, two zeros), nor for
// pointers and interfaces.
func plainKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Array:
		return plainKey(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plainKey(t.Field(i).Type) || t.Field(i).Name == "_" {
				return false
			}
		}
		return !opaque(t)
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return scalar(t.Kind())
}

func scalar(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Complex128
}
