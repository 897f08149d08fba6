package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// logOf returns a log from texts such as "a@5": version 5 of object a, or "-a@6": its deletion.
func logOf(texts string) (log []store.LogEntry[*fleet.Object]) {
	last := map[object.Key]*fleet.Entry{}
	for _, text := range strings.Fields(texts) {
		c := changeOf(text)
		l := store.LogEntry[*fleet.Object]{Key: c.Key, Version: c.Version, Old: last[c.Key]}
		if !c.Deleted {
			l.New = storedEntry(object.Item[*fleet.Object]{Key: c.Key, Version: c.Version,
				Value: &fleet.Object{Bytes: []byte(`{}`)}})
		}
		last[c.Key] = l.New
		log = append(log, l)
	}
	return log
}

func changeOf(text string) (c fleet.OrderedChange) {
	text, c.Deleted = strings.CutPrefix(text, "-")
	key, version, _ := strings.Cut(text, "@")
	c.Key, c.Version = object.Key(key), object.Version(version)
	return c
}

func textOf(changes []pastChange) string {
	var out []string
	for _, p := range changes {
		old, now := "-", "-"
		if p.old != nil {
			old = string(p.old.Version)
		}
		if p.now != nil {
			now = string(p.now.Version)
		}
		out = append(out, fmt.Sprintf("%d:%s/%s:%s>%s", p.seq, p.cluster, p.key, old, now))
	}
	return strings.Join(out, " ")
}

// What cannot be found ends the order, or begins it; nothing else gets another version.
func TestTheOrderIsFoundUpToWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		order        string            // of cluster/change, from version 101 of the fleet on
		logs         map[string]string // the log of each cluster
		from         map[string]object.Version
		begin        uint64
		end          uint64
		found, later string
	}{
		"everything": {order: "eu/a@5 us/a@3 eu/-a@6", logs: map[string]string{"eu": "a@5 -a@6", "us": "a@3"},
			begin: 100, end: 104, found: "101:eu/a:->5 102:us/a:->3 103:eu/a:5>-"},
		"new changes come behind": {order: "eu/a@5", logs: map[string]string{"eu": "a@5 a@6 b@7"},
			begin: 100, end: 102, found: "101:eu/a:->5", later: "0:eu/a:5>6 0:eu/b:->7"},
		"a cluster did not send its last change again": {order: "eu/a@5 us/a@3 eu/b@6 us/b@4",
			logs:  map[string]string{"eu": "a@5", "us": "a@3 b@4"},
			begin: 100, end: 103, found: "101:eu/a:->5 102:us/a:->3", later: "104:us/b:->4"},
		"a log does not go back far enough": {order: "eu/a@5 us/a@3 eu/b@6 us/b@4",
			logs: map[string]string{"eu": "b@6", "us": "a@3 b@4"}, from: map[string]object.Version{"eu": "5"},
			begin: 101, end: 105, found: "102:us/a:->3 103:eu/b:->6 104:us/b:->4"},
		"a change in the middle is lost": {order: "eu/a@5 eu/b@6 eu/c@7", logs: map[string]string{"eu": "a@5 c@7"},
			begin: 102, end: 104, found: "103:eu/c:->7"},
		"clients were not sent every state": {order: "eu/a@5 eu/a@7", logs: map[string]string{"eu": "a@5 a@6 a@7"},
			begin: 100, end: 103, found: "101:eu/a:->5 102:eu/a:5>7"},
		"clients have not seen an object that came and went": {order: "eu/a@5 eu/c@8",
			logs:  map[string]string{"eu": "a@5 b@6 -b@7 c@8 -d@9"},
			begin: 100, end: 103, found: "101:eu/a:->5 102:eu/c:->8"},
		"an object was replaced": {order: "eu/a@5", logs: map[string]string{"eu": "a@5 -a@6 a@7"},
			begin: 100, end: 102, found: "101:eu/a:->5", later: "0:eu/a:5>- 0:eu/a:->7"},
		"more changes of the last version may have been sent": {order: "us/a@3 eu/a@5", logs: map[string]string{"eu": "b@6",
			"us": "a@3"}, from: map[string]object.Version{"eu": "5"}, begin: 103, end: 103, later: "0:eu/b:->6"},
		"nothing is left": {order: "eu/a@5 eu/b@6", logs: map[string]string{"eu": "c@9"},
			begin: 100, end: 101, later: "0:eu/c:->9"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &foundOrder{dropped: 100, end: 101}
			members := map[string]*savedMember{}
			for cluster, log := range c.logs {
				from := c.from[cluster]
				if from == "" {
					from = "1"
				}
				members[cluster] = &savedMember{name: cluster, from: from, log: logOf(log)}
			}
			for text := range strings.FieldsSeq(c.order) {
				cluster, text, _ := strings.Cut(text, "/")
				change := changeOf(text)
				change.Cluster, change.Seq = cluster, f.end
				f.end++
				members[cluster].changes = append(members[cluster].changes, change)
			}
			for _, cluster := range []string{"eu", "us"} {
				if m := members[cluster]; m != nil {
					f.add(m)
				}
			}
			f.order()
			if f.dropped != c.begin || f.end != c.end || textOf(f.changes) != c.found || textOf(f.later) != c.later {
				t.Errorf("after %d and before %d: %s; later: %s", f.dropped, f.end, textOf(f.changes), textOf(f.later))
			}
		})
	}
}
