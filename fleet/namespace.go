package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
)

// NamespaceIndex is the index of every resource by the namespaces of its objects.
// Objects that are in none are not in it.
const NamespaceIndex = "namespace"

func noNamespace(*Object) ([]string, error) { return nil, nil }

// byNamespace finds the namespace in an object's bytes. It reads no further than it has
// to: of what an API server sends, that is the first few hundred bytes.
func byNamespace(obj *Object) ([]string, error) {
	b, ok := member(obj.Bytes, "metadata")
	if !ok {
		return nil, errNoMetadata
	}
	value, ok := member(b, "namespace")
	if !ok || len(value) == 0 || value[0] != '"' {
		return nil, nil
	}
	end := skipString(value)
	if end <= len(`""`) {
		return nil, nil
	}
	text := value[1 : end-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return []string{string(text)}, nil
	}
	var plain string
	if err := json.Unmarshal(value[:end], &plain); err != nil {
		return nil, err
	}
	return []string{plain}, nil
}

var errNoMetadata = errors.New("the object has no metadata")

// member finds the value of a member of the object that b begins with, and gives b from
// there on. b is valid JSON: the source has checked it.
func member(b []byte, name string) ([]byte, bool) {
	b = skipSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return nil, false
	}
	b = skipSpace(b[1:])
	for len(b) > 0 && b[0] == '"' {
		end := skipString(b)
		found := end > 1 && string(b[1:end-1]) == name
		b = skipSpace(b[end:])
		if len(b) == 0 || b[0] != ':' {
			return nil, false
		}
		b = skipSpace(b[1:])
		if found {
			return b, true
		}
		b = skipSpace(b[skipValue(b):])
		if len(b) == 0 || b[0] != ',' {
			return nil, false
		}
		b = skipSpace(b[1:])
	}
	return nil, false
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// skipString is the length of the string that b begins with, quotes included.
func skipString(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue is the length of the value that b begins with.
func skipValue(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += skipString(b[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 {
				return i // the end of what the value is in
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}
