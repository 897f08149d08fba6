package server_test

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestKubectlAuthWorksOnTheMirror(t *testing.T) {
	cluster := filled(t)
	p := mirror(t)
	p.caughtUp(t)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"auth can-i list pods -A", 0, "yes"},
		{"auth can-i watch boats.server.test -A", 0, "yes"},
		{"auth can-i get deployments.apps -A", 0, "yes"},
		{"auth can-i get /version", 0, "yes"},
		{"auth can-i create pods -A", 1, "no - this is a read-only mirror"},
		{"auth can-i get pods --subresource=log -A", 1, "no - a mirror has no log of pods"},
		{"auth can-i --list", 0, "deployments.apps"},
		{"auth whoami", 0, "mirador:local"},
	} {
		for _, server := range []string{p.ours, p.all} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			code, out := kubectl(t, ctx, cluster, server, c.args).ended(t)
			cancel()
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("kubectl %s on %s: exit code %d:\n%s", c.args, server, code, out)
			}
		}
	}
}
