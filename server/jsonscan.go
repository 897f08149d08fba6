package server

import "bytes"

// What the fleet stores is JSON that was checked when it came in. Its parts are found here by
// scanning for their extents: decoding ten thousand pods to cut out their metadata would
// take as long as everything else together.

// member finds the value of a member of a JSON object. The last one of a name counts, as it does
// for decoders. ok is false if there is none or obj is no JSON object.
func member(obj []byte, name string) (start, end int, ok bool) {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return 0, 0, false
	}
	for i = skipSpace(obj, i+1); i < len(obj) && obj[i] == '"'; {
		keyEnd := skipString(obj, i)
		key := obj[i+1 : max(i+1, keyEnd-1)]
		i = skipSpace(obj, keyEnd)
		if i >= len(obj) || obj[i] != ':' {
			return 0, 0, false
		}
		from := skipSpace(obj, i+1)
		to := skipValue(obj, from)
		if string(key) == name {
			start, end, ok = from, to, true
		}
		i = skipSpace(obj, to)
		if i >= len(obj) || obj[i] != ',' {
			break
		}
		i = skipSpace(obj, i+1)
	}
	return start, end, ok
}

// text gives a member that is a string without escapes; names, namespaces and versions are.
func text(obj []byte, name string) string {
	from, to, ok := member(obj, name)
	if !ok || to-from < 2 || obj[from] != '"' {
		return ""
	}
	return string(obj[from+1 : to-1])
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns what follows the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns what follows the value that begins at i.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	if n := bytes.IndexAny(b[i:], ",}] \n\t\r"); n >= 0 {
		return i + n
	}
	return len(b)
}

// withoutKind cuts apiVersion and kind off the front of an object, as the items of a built-in list
// are served. Custom resources are served whole: theirs do not stand in front, in this order.
func withoutKind(obj []byte) (head, rest []byte) {
	if !bytes.HasPrefix(obj, []byte(`{"kind":"`)) {
		return nil, obj
	}
	i := skipString(obj, len(`{"kind":`))
	if !bytes.HasPrefix(obj[i:], []byte(`,"apiVersion":"`)) {
		return nil, obj
	}
	i = skipString(obj, i+len(`,"apiVersion":`))
	if i >= len(obj) || obj[i] != ',' {
		return nil, obj
	}
	return obj[:1], obj[i+1:]
}
