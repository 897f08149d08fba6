package simulate

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/feed"
)

// cluster is one simulated API server.
type cluster struct {
	of     *Clusters
	number int
	pods   *feed.Cluster // nil if it has none
}

// ServeHTTP answers discovery and watches. Clients must begin with a watch that sends the state, as ours do.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/version":
		writeJSON(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case path == "/api/v1/namespaces/kube-system":
		writeJSON(w, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system",`+
			`"uid":"uid-of-%d"}}`, c.number))
	case path == "/api/v1/pods" && c.pods != nil:
		if asksForState(r) {
			c.of.states.Add(1)
		}
		c.pods.ServeHTTP(w, r)
	case c.of.answers.serve(w, r):
	case c.of.answers.kinds[path] != nil:
		c.watchNothing(w, r, c.of.answers.kinds[path])
	default:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

func asksForState(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") == "true" }

// bookmarkEvery is the pace of an API server's bookmarks.
const bookmarkEvery = time.Minute

// version is that of all states, which do not change.
const version = "999999999"

// watchNothing answers a watch of a resource without objects: with bookmarks, until the requested time is over.
func (c *cluster) watchNothing(w http.ResponseWriter, r *http.Request, k *kind) {
	w.Header().Set("Content-Type", "application/json")
	bookmark := func(annotations string) error {
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q%s}}}`+"\n",
			k.name, k.apiVersion, version, annotations)
		return http.NewResponseController(w).Flush()
	}
	if asksForState(r) {
		if bookmark(`,"annotations":{"k8s.io/initial-events-end":"true"}`) != nil {
			return
		}
		c.of.states.Add(1)
	} else if http.NewResponseController(w).Flush() != nil {
		return
	}
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		seconds = 300
	}
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	every := time.NewTicker(bookmarkEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if bookmark("") != nil {
				return
			}
		case <-end.C:
			bookmark("") // as an API server does before it ends a watch; the client may be gone
			return
		case <-r.Context().Done():
			return
		}
	}
}

func writeJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body) // the client sees it
}
