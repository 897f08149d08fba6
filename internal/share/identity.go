package share

import (
	"reflect"
	"strings"
)

// identity reports whether values of t are compared by address: what they refer to is neither read nor copied nor
// shared. A pointer, slice or map that leads to a value that must not be copied, such as a lock, is compared by
// address.
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

// pinned reports whether a value of t contains something that must not be copied.
func pinned(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return pinned(t.Elem()) // of any length: an array of zero locks is a mark for vet
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

// transparent are the packages of the standard library whose structs are plain data. Any other struct of the standard
// library may be a lock, a cache, or something that the runtime knows by its address (a type, a time zone, a handle).
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

// standard reports whether pkg looks like a package of the standard library: the first element of any other path has a
// dot in it, unless the module has a bare name.
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

// plainKey reports whether two keys of type t are the same key of a map exactly if their bits and strings are the
// same. That is not so for floats (NaN, two zeros), pointers and interfaces.
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
