package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchCommand shows objects and their changes.
type watchCommand struct {
	readCommand
	events bool
}

func newWatch() *cobra.Command {
	c := &watchCommand{readCommand: readCommand{selectFlags: selectFlags{sortable: true}}}
	cmd := &cobra.Command{
		Use:   "watch RESOURCE [NAME…]",
		Short: "Show objects of one resource, and every change of them",
		Long: `Show objects of one resource, and then a line for every change of them, until Ctrl-C. An object
that ceases to match a selector is shown as deleted. If the daemon goes away, it is asked again
until it is back, and what was missed is shown then.`,
		Example: `  mirador watch pods -A -o wide             # with what happened in front
  mirador watch pods -n web -l app=shop --cluster eu
  mirador watch deployments -A --where 'status.unavailableReplicas > 0' --output-watch-events`,
		Args: takes(1, -1, "a resource and any number of names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.events = c.events || c.output == "wide"
			return c.run(cmd, args)
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&c.events, "output-watch-events", false, "show what happened: ADDED, MODIFIED or DELETED")
	return cmd
}

// run is the command.
func (c *watchCommand) run(cmd *cobra.Command, args []string) error {
	if err := c.parse(); err != nil {
		return err
	}
	ctx := cmd.Context()
	s, a, err := c.beginOne(ctx, args, cmd.ErrOrStderr())
	if err == nil {
		defer s.close()
		err = c.watch(ctx, s, a, cmd.OutOrStdout())
	}
	if ctx.Err() != nil {
		return nil // the user ended the watch
	}
	return err
}

// watch lists and then follows changes until ctx ends.
func (c *watchCommand) watch(ctx context.Context, s *session, a *ask, w io.Writer) error {
	v := c.view(w, a)
	version, err := c.relist(ctx, s, a, v)
	if err != nil {
		return fmt.Errorf("watch %s: %w", a.gvr.Resource, err)
	}
	pause := newPause()
	for ctx.Err() == nil {
		began := time.Now()
		err := c.follow(ctx, s, a, v, &version)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			version, err = c.relistAgain(ctx, s, a, v, pause)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passes(err):
			return fmt.Errorf("watch %s: %w", a.gvr.Resource, err)
		case err != nil:
			pause.say(s.warn, err)
		case time.Since(began) > pauseMost:
			pause.reset()
		}
		pause.wait(ctx)
	}
	return nil
}

// relist lists and shows the differences.
func (c *watchCommand) relist(ctx context.Context, s *session, a *ask, v *view) (string, error) {
	found, err := s.list(ctx, a, c.accept(), 0)
	if err != nil {
		return "", err
	}
	return found.Metadata.ResourceVersion, v.reconcile(found)
}

// relistAgain relists after a pause, so that a server without history does not receive requests in a loop.
func (c *watchCommand) relistAgain(ctx context.Context, s *session, a *ask, v *view,
	p *pause) (version string, err error) {
	for {
		p.wait(ctx)
		version, err = c.relist(ctx, s, a, v)
		if err == nil || ctx.Err() != nil || !passes(err) {
			return version, err
		}
		p.say(s.warn, err)
	}
}

// passes reports whether an error is temporary.
func passes(err error) bool {
	return ExitCode(err) == exitUnreachable || errors.Is(err, errBroken) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err)
}

// errBroken reports a stream that ended unexpectedly.
var errBroken = errors.New("the connection was lost")

// maxEvent bounds one event of a watch.
const maxEvent = 64 << 20

// follow shows the changes after a version until the stream ends. It updates version.
func (c *watchCommand) follow(ctx context.Context, s *session, a *ask, v *view, version *string) error {
	params := maps.Clone(a.params)
	params.Del("orderBy")
	params.Set("watch", "1")
	params.Set("allowWatchBookmarks", "true")
	params.Set("resourceVersion", *version)
	accept := c.accept()
	if c.form == asName {
		accept = acceptOneMeta
	}
	body, err := s.open(ctx, http.MethodGet, a.path, params, accept, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	limited := &io.LimitedReader{R: body}
	dec := json.NewDecoder(limited)
	for {
		limited.N = maxEvent
		var e struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF) && limited.N > 0:
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		if e.Type == "ERROR" {
			return streamError(e.Object)
		}
		now, err := v.event(e.Type, e.Object)
		if err != nil {
			return err
		}
		if now != "" {
			*version = now
		}
	}
}

func streamError(b []byte) error {
	var st metav1.Status
	if err := json.Unmarshal(b, &st); err != nil {
		return fmt.Errorf("read why the watch ended: %w", err)
	}
	return &apierrors.StatusError{ErrStatus: st}
}

const (
	pauseLeast = 500 * time.Millisecond
	pauseMost  = 10 * time.Second
)

// pause is the time between two attempts. It doubles.
type pause struct {
	next time.Duration
	said bool
}

func newPause() *pause { return &pause{next: pauseLeast} }

func (p *pause) reset() { *p = pause{next: pauseLeast} }

// say warns once that a failed request is retried.
func (p *pause) say(w io.Writer, err error) {
	if !p.said {
		fmt.Fprintf(w, "warning: %v; trying again\n", err)
		p.said = true
	}
}

func (p *pause) wait(ctx context.Context) {
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	p.next = min(2*p.next, pauseMost)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
