package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/registry"
)

// faultRequest is the body of POST /fault.
type faultRequest struct {
	Action Action    `json:"action"`
	Part   part.Name `json:"part"`
}

// listen serves the cluster's control socket: POST /down and POST /fault. The
// socket is in a folder that only this user can enter.
func (c *Cluster) listen(ctx context.Context) (*http.Server, error) {
	path := c.Registry.ControlSocket(c.Name)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("make the control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("make the control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /down", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		c.cancel(errStopped)
	})
	mux.HandleFunc("POST /fault", func(w http.ResponseWriter, r *http.Request) {
		var req faultRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, "read the request: "+err.Error(), http.StatusBadRequest)
			return
		}
		// The fault continues even if the client disconnects, because half a restart is worse than a whole one.
		if err := c.fault(ctx, req.Action, req.Part); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with server.Close
	return server, nil
}

// Client talks to the supervisor of one running cluster.
type Client struct {
	name string
	reg  *registry.Registry
	http *http.Client
}

// NewClient returns a client of the named cluster's supervisor.
func NewClient(reg *registry.Registry, name string) *Client {
	socket := reg.ControlSocket(name)
	return &Client{name: name, reg: reg, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
}

func (c *Client) post(ctx context.Context, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://devcluster"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("reach the supervisor of cluster %q: %w", c.name, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of cluster %q: %w", c.name, err)
	}
	if resp.StatusCode >= 300 {
		return errors.New(strings.TrimSpace(string(text)))
	}
	return nil
}

// Fault applies the action to the part and returns when it is done.
func (c *Client) Fault(ctx context.Context, action Action, name part.Name) error {
	body, err := json.Marshal(faultRequest{action, name})
	if err != nil {
		return err
	}
	if err := c.post(ctx, "/fault", string(body)); err != nil {
		return fmt.Errorf("fault %s %s: %w", action, name, err)
	}
	return nil
}

// Down stops the cluster and returns when it has ended.
func (c *Client) Down(ctx context.Context) error {
	if err := c.post(ctx, "/down", ""); err != nil {
		if _, gone := c.reg.Get(c.name); errors.Is(gone, registry.ErrUnknown) {
			return nil // it was ending already
		}
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := c.reg.Get(c.name); errors.Is(err, registry.ErrUnknown) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("cluster %q has not ended: %w", c.name, ctx.Err())
		}
	}
}
