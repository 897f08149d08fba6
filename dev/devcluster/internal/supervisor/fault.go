package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
)

// Action is the action of a fault.
type Action string

// The actions.
const (
	Pause   Action = "pause"
	Resume  Action = "resume"
	Restart Action = "restart"
	Kill    Action = "kill"
	// Compact concerns etcd and the API server together; it takes no part.
	Compact Action = "compact"
	// Rotate concerns the API server's certificate; it takes no part.
	Rotate Action = "rotate"
)

// Actions returns every action.
func Actions() []Action { return []Action{Pause, Resume, Restart, Kill, Compact, Rotate} }

// TakesPart reports whether the action applies to one part.
func (a Action) TakesPart() bool { return a != Compact && a != Rotate }

// CheckFault returns an error if the action does not apply to the part.
func CheckFault(action Action, name part.Name) error {
	switch {
	case !slices.Contains(Actions(), action):
		return fmt.Errorf("unknown fault %q: use one of %v", action, Actions())
	case !action.TakesPart() && name != "":
		return fmt.Errorf("%s takes no part", action)
	case !action.TakesPart():
		return nil
	}
	_, err := part.ParseName(string(name))
	return err
}

// fault applies the action to the part and returns when it is done; for a restart, when the part is ready. Faults run
// one at a time.
func (c *Cluster) fault(ctx context.Context, action Action, name part.Name) error {
	if err := CheckFault(action, name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.entry.Ready {
		return fmt.Errorf("cluster %q is not ready", c.Name)
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("cluster %q is ending: %w", c.Name, err)
	}
	c.say("fault: %s %s", action, name)
	switch action {
	case Compact:
		return c.compact(ctx)
	case Rotate:
		return c.rotate(ctx)
	}
	ch := c.children[name]
	if ch == nil {
		return fmt.Errorf("cluster %q runs without %s", c.Name, name)
	}
	if action == Restart {
		return c.restart(ctx, name)
	}
	if ch.ended() {
		return fmt.Errorf("%s is not running: start it with `restart`", name)
	}
	switch action {
	case Pause:
		return ch.pause()
	case Resume:
		return ch.resume()
	case Kill:
		ch.kill()
	}
	return nil
}

// restart stops a part if it is running and starts it again.
func (c *Cluster) restart(ctx context.Context, name part.Name) error {
	grace := workerGrace
	if name == part.APIServer || name == part.Etcd {
		grace = apiServerGrace
	}
	c.stopPart(name, grace)
	switch name {
	case part.APIServer:
		err := c.launchAPIServer(ctx)
		var lost *portLostError
		if errors.As(err, &lost) {
			return fmt.Errorf("port %d was taken while the API server was down: free it and restart again", c.state.Port)
		}
		return err
	case part.Etcd:
		if _, err := c.launch(name); err != nil {
			return err
		}
		if err := c.waitEtcd(ctx); err != nil {
			return err
		}
		if api := c.children[part.APIServer]; !api.ended() && !api.isPaused() {
			return c.waitAPIServer(ctx, api)
		}
		return nil
	default:
		_, err := c.launch(name)
		return err
	}
}

// compactTimeout bounds the requests to etcd, which may be paused or dead.
const compactTimeout = 10 * time.Second

// compact removes etcd's history up to now and restarts the API server, whose watch cache would otherwise still have
// it. The write before it makes every version that a client can have seen older than the remaining history: a watch
// that resumes from any of them gets 410 Gone.
func (c *Cluster) compact(ctx context.Context) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"unix://" + c.etcdSocket},
		DialTimeout: compactTimeout,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return fmt.Errorf("reach etcd: %w", err)
	}
	defer client.Close()
	etcdCtx, cancel := context.WithTimeout(ctx, compactTimeout)
	defer cancel()
	put, err := client.Put(etcdCtx, "devcluster/compacted", time.Now().Format(time.RFC3339Nano))
	if err != nil {
		return fmt.Errorf("write to etcd before compacting it: %w", err)
	}
	if _, err := client.Compact(etcdCtx, put.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact etcd at revision %d: %w", put.Header.Revision, err)
	}
	return c.restart(ctx, part.APIServer)
}
