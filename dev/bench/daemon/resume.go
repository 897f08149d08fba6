package daemon

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// Resumed describes what became of the watches of clients when the daemon was killed and started again.
type Resumed struct {
	// Gone is how many watches got 410, Missing how many changes watches did not receive, and Twice how many they
	// received more than once.
	Gone, Missing, Twice int
	// Took is the time from the new start until every watch was open again.
	Took time.Duration
}

// client watches the pods of one namespace, and goes on at its version whenever the watch ends.
type client struct {
	f        *Fleet
	where    place
	path     string
	version  string
	identity []byte // precedes the version of an object in its cluster

	mu     sync.Mutex
	seen   map[string]int // by version in the cluster
	gone   bool
	opened time.Time
}

// openClients opens a number of watches, half of them at /fleet.
func (f *Fleet) openClients(ctx context.Context, p *plan, n int, work *sync.WaitGroup) ([]*client, error) {
	var places []place
	for where := range p.count {
		places = append(places, where)
	}
	var all []*client
	for i := range n {
		where := places[i/2%len(places)]
		c := &client{f: f, where: where, seen: map[string]int{}, identity: []byte(`"resourceVersion":"`),
			path: fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods", simName(where.cluster), where.namespace)}
		if i%2 == 1 {
			c.path = fmt.Sprintf("/fleet/api/v1/namespaces/%s.%s/pods", simName(where.cluster), where.namespace)
			c.identity = []byte(`"mirador.dev/resource-version":"`)
		}
		var err error
		if c.version, err = f.version(ctx, c.path); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for _, c := range all {
		work.Go(func() { c.follow(ctx) })
	}
	return all, nil
}

// follow watches until ctx ends or the watch gets 410.
func (c *client) follow(ctx context.Context) {
	for ctx.Err() == nil {
		body, err := c.f.open(ctx, c.path+"?watch=true&allowWatchBookmarks=true&resourceVersion="+c.version, "", false)
		if err != nil { // the daemon is down
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		c.mu.Lock()
		c.opened = time.Now()
		c.mu.Unlock()
		for lines := bufio.NewReaderSize(body, 64<<10); ; {
			line, err := readLine(lines)
			if err != nil {
				break
			}
			if !c.receive(line) {
				body.Close()
				return
			}
		}
		body.Close()
	}
}

func (c *client) receive(line []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) {
		c.gone = true
		return false
	}
	c.version = string(after(line, `"resourceVersion":"`))
	if !bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) {
		c.seen[string(after(line, string(c.identity)))]++
	}
	return true
}

// resumed waits until the clients have received what was sent, and counts what they lack.
func resumed(ctx context.Context, p *plan, all []*client, began time.Time) (out Resumed) {
	for late := time.Now().Add(30 * time.Second); ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		out = Resumed{}
		for _, c := range all {
			c.mu.Lock()
			if c.gone {
				out.Gone++
			}
			out.Took = max(out.Took, c.opened.Sub(began))
			for _, s := range p.sends {
				if s.place == c.where && c.seen[s.change.Version] == 0 {
					out.Missing++
				}
			}
			for _, n := range c.seen {
				out.Twice += n - 1
			}
			c.mu.Unlock()
		}
		if out.Missing == 0 || time.Now().After(late) {
			return out
		}
	}
	return out
}
