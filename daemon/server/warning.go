package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

// warn adds a Warning header, which kubectl and client-go show to their users.
func warn(w http.ResponseWriter, text string) {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if header, err := utilnet.NewWarningHeader(299, "mirador", text); err == nil {
		w.Header().Add("Warning", header)
	}
}

// The last-event age from which answers have a warning; they have one at once if the last attempt to read has failed.
// While a watch is open, it is longer than a watch lasts, since not every resource has bookmarks.
const (
	staleFollowed = 12 * time.Minute
	staleLost     = time.Minute
)

// restoredHeader names the clusters whose objects in an answer are from disk, and how old they are in seconds, such as
// "eu;age=125".
const restoredHeader = "Mirador-Restored"

// warnStale adds a warning if the answer may be out of date.
func warnStale(w http.ResponseWriter, c *fleet.Cluster, res *fleet.Resource) {
	h, after := res.Health(), staleLost
	if h.Reflector.Restored {
		age := h.Reflector.Age(time.Now()).Round(time.Second)
		w.Header().Add(restoredHeader, fmt.Sprintf("%s;age=%d", c.Name(), int(age.Seconds())))
		warn(w, fmt.Sprintf("cluster %s: %s are as they were %s ago, from disk: the cluster has not confirmed them since the "+
			"start", c.Name(), res.GVR().Resource, age))
		return
	}
	switch state := h.Reflector.State.String(); {
	case state == "streaming":
		after = staleFollowed
	case state == "retrying" || state == "listing" && h.Reflector.Err != nil:
		warn(w, fmt.Sprintf("cluster %s: %s are as they were %s ago: %s", c.Name(), res.GVR().Resource,
			h.Reflector.Age(time.Now()).Round(time.Second), clipReason(fmt.Sprint(h.Reflector.Err))))
		return
	}
	if age := h.Reflector.Age(time.Now()); age > after {
		warn(w, fmt.Sprintf("cluster %s has sent nothing about %s for %s: this may be out of date",
			c.Name(), res.GVR().Resource, age.Round(time.Second)))
	}
}

func warnLeftOut(w http.ResponseWriter, a *absent) {
	if a.cluster == "" {
		warn(w, "a cluster is left out: "+a.why)
		return
	}
	warn(w, fmt.Sprintf("cluster %s is left out: %s", a.cluster, a.why))
}
