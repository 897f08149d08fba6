package query

import (
	"errors"
	"strings"
	"testing"
)

func TestCompileErrorHasThePositionAndTheVariables(t *testing.T) {
	const variables = "; an expression can use object, metadata, spec, status and cluster, as in "
	for text, want := range map[string]string{
		`phase == "Running"`: `the expression "phase == \"Running\"" is wrong at column 1: ` +
			`undeclared reference to 'phase'` + variables,
		`status.phase == Running`:   "is wrong at column 17: undeclared reference to 'Running'" + variables,
		`status.phase = "Running"`:  "is wrong at column 14: a single = is not an operator; compare with ==",
		`status.phase ==`:           "is wrong at column 16: something is missing at its end" + variables,
		`(status.phase == "x"`:      "something is missing at its end" + variables,
		`size("a") == "b"`:          "is wrong at column 11: == does not take (int, string)" + variables,
		`status.phase == "Running`:  `is wrong at column 17: token recognition error at: '"Running'` + variables,
		"status.phase\n== Runnings": "is wrong at line 2, column 4: undeclared reference to 'Runnings'" + variables,
		`nothing(metadata)`:         "undeclared reference to 'nothing'" + variables,
	} {
		_, err := CompileWhere(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "ERROR") ||
			!errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}
