package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/measure"
)

// ChildArgument is the hidden first argument that makes a process run one trial.
const ChildArgument = "run-one-trial"

// order is what the parent sends to a child, on its standard input.
type order struct {
	Case    string `json:"case"`
	Variant string `json:"variant"`
	Params  Params `json:"params"`
}

// Child runs the trial described on standard input and prints its figures.
func Child(ctx context.Context, cases []Case, in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read which trial to run: %w", err)
	}
	measure.Quick = o.Params.Quick
	for i := range cases {
		if cases[i].Name != o.Case {
			continue
		}
		v, err := cases[i].variant(o.Variant)
		if err != nil {
			return err
		}
		figures, err := v.Run(ctx, &o.Params)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(figures)
	}
	return fmt.Errorf("there is no case %q", o.Case)
}

// trialTimeout is far above the duration of any trial, so that one that hangs does not block the run.
const trialTimeout = 10 * time.Minute

// trial runs one variant in its own process.
func trial(ctx context.Context, o order) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to start it again: %w", err)
	}
	input, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, ChildArgument)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("case %s, %s: %w", o.Case, o.Variant, err), outputEnd(stderr.String()))
	}
	var figures Figures
	if err := json.Unmarshal(out, &figures); err != nil {
		return nil, fmt.Errorf("case %s, %s: read its figures: %w", o.Case, o.Variant, err)
	}
	return figures, nil
}

// outputEnd returns an error with the end of a failed child's output.
func outputEnd(text string) error {
	const keep = 2000
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if len(text) > keep {
		text = "…" + text[len(text)-keep:]
	}
	return errors.New(text)
}
