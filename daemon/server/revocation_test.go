package server

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/informertest"
)

// fickle is an Authorizer that shows something else once a watch was authorized, which takes two questions about
// watching, and announces no change.
type fickle struct {
	allowAll
	asked atomic.Int32
}

func (f *fickle) Visible(_ context.Context, _ user.Info, _, verb string, _ schema.GroupResource,
	_ bool) (*query.Visible, error) {
	if verb != "watch" || f.asked.Add(1) <= 2 {
		return &query.Visible{Namespaces: []string{"web"}}, nil
	}
	return &query.Visible{Namespaces: []string{"shop"}}, nil
}

// A right that is withdrawn after a watch was authorized and before it is registered ends the watch, too.
func TestAWatchEndsWhenItsRightsChangeAtItsBeginning(t *testing.T) {
	rights := &fickle{}
	s := NewInMemory(t, map[string]http.Handler{"eu": informertest.NewServer()},
		fleet.Options{Include: []string{"pods"}, WithoutOpenAPI: true}, Options{Authorizer: rights, StartGrace: -1})
	s.Start()
	for {
		resp, err := s.Client.Get(s.URL + "/fleet/api/v1/pods?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable { // the pods are not mirrored yet
			resp.Body.Close()
			rights.asked.Store(0)
			continue
		}
		lines := bufio.NewScanner(resp.Body)
		if !lines.Scan() || !strings.Contains(lines.Text(), `"code":410`) || lines.Scan() {
			t.Errorf("%s: %s", resp.Status, lines.Text())
		}
		resp.Body.Close()
		return
	}
}
