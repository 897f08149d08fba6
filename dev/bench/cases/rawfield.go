package cases

import (
	"bytes"
)

// rawField finds the first "name":"value" in JSON as a server writes it, without blanks and with the metadata first.
// It stands for a reader of few fields and is correct only for these pods.
func rawField(object []byte, name string) string {
	_, rest, found := bytes.Cut(object, []byte(`"`+name+`":"`))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}
