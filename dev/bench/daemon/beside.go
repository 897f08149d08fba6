package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// scanPath returns a request that has to read every pod of one simulated cluster or of all: most match little.
func (f *Fleet) scanPath(i int) string {
	where := "?where=" + url.QueryEscape("spec.containers.exists(c, c.image.endsWith(':none'))")
	switch i % 4 {
	case 0:
		return "/fleet/api/v1/pods" + where
	case 1:
		return f.AllPath(i) + "?limit=10&orderBy=" + url.QueryEscape("status.podIP")
	}
	return f.AllPath(i) + where
}

// Scans keeps a number of clients busy with scans, each with one request after the other, until the returned function
// is called. A client that is answered with Retry-After retries at once.
func (f *Fleet) Scans(ctx context.Context, clients int) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}}
	var wg sync.WaitGroup
	failed := make([]error, clients)
	for c := range clients {
		wg.Go(func() {
			for i := c; ctx.Err() == nil && failed[c] == nil; i++ {
				failed[c] = scan(ctx, client, *f.url.Load()+f.scanPath(i))
			}
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		client.CloseIdleConnections()
		return errors.Join(failed...)
	}
}

func scan(ctx context.Context, client *http.Client, at string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	resp, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("scan: %w", err)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("scan %s: %s", at, resp.Status)
	}
	return nil
}

// SlowReaders starts n lists of 10,000 pods, of which only the first byte is read until the returned function is
// called.
func (f *Fleet) SlowReaders(n int) (stop func(), err error) {
	var conns []net.Conn
	stop = func() {
		for _, c := range conns {
			c.Close()
		}
	}
	for i := range n {
		conn, err := net.Dial("tcp", strings.TrimPrefix(*f.url.Load(), "http://"))
		if err == nil {
			conns = append(conns, conn)
			_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", f.AllPath(i))
		}
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if err != nil {
			stop()
			return nil, fmt.Errorf("start a slow read: %w", err)
		}
	}
	return stop, nil
}
