package query

import (
	"errors"
	"strconv"

	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// decode decodes a valid JSON value to the Go type that unstructured objects use for it.
func decode(v []byte) (any, error) {
	decoded, _, err := decodeAt(v, 0)
	return decoded, err
}

// decodeAt decodes the value at i and returns where it ends. It reads each byte once, however deep values are nested.
func decodeAt(b []byte, i int) (v any, end int, err error) {
	switch b[i] {
	case '"':
		v, end = stringAt(b, i)
		return v, end, nil
	case '{':
		return objectAt(b, i)
	case '[':
		return arrayAt(b, i)
	}
	end = jsonscan.Value(b, i)
	switch b[i] {
	case 't':
		return true, end, nil
	case 'f':
		return false, end, nil
	case 'n':
		return nil, end, nil
	}
	v, err = decodeNumber(b[i:end])
	return v, end, err
}

func stringAt(b []byte, i int) (s string, end int) {
	end, escaped := jsonscan.String(b, i)
	return jsonscan.Unquote(b[i+1:end-1], escaped), end
}

// decodeString decodes a value that is a string.
func decodeString(v []byte) string {
	s, _ := stringAt(v, 0)
	return s
}

var errRange = errors.New("a number of the object is out of range")

// decodeNumber returns an int64 if the number is written as an integer and fits, and a float64 otherwise.
func decodeNumber(v []byte) (any, error) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return nil, errRange
	}
	return f, nil
}

func objectAt(b []byte, i int) (any, int, error) {
	object := make(map[string]any)
	for i = jsonscan.Space(b, i+1); b[i] != '}'; {
		name, colon := stringAt(b, i)
		v, end, err := decodeAt(b, jsonscan.ValueBehind(b, colon))
		if err != nil {
			return nil, end, err
		}
		object[name] = v
		i = jsonscan.Behind(b, end)
	}
	return object, i + 1, nil
}

func arrayAt(b []byte, i int) (any, int, error) {
	array := []any{}
	for i = jsonscan.Space(b, i+1); b[i] != ']'; {
		v, end, err := decodeAt(b, i)
		if err != nil {
			return nil, end, err
		}
		array = append(array, v)
		i = jsonscan.Behind(b, end)
	}
	return array, i + 1, nil
}
