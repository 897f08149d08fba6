package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// request is one request in the API server's audit log.
type request struct {
	ID       string    `json:"auditID"`
	Verb     string    `json:"verb"`
	Agent    string    `json:"userAgent"`
	URI      string    `json:"requestURI"`
	Received time.Time `json:"requestReceivedTimestamp"`
	User     struct {
		Extra map[string][]string `json:"extra"`
	} `json:"user"`
}

// credential returns the credential of the request: a hash of the client certificate.
func (r *request) credential() string {
	return strings.Join(r.User.Extra["authentication.kubernetes.io/credential-id"], ",")
}

// auditLog reads the lists and watches of some user agents from the server's audit log. A watch is logged when it
// starts and when it ends; it counts once.
type auditLog struct {
	path   string
	agents []string
	at     int64 // how far the file was read
	seen   map[string]bool
	found  []request
}

// read adds what was logged since the last call.
func (a *auditLog) read(t *testing.T) {
	t.Helper()
	f, err := os.Open(a.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < a.at {
		t.Fatalf("the audit log was rotated, so its count would be wrong: use fewer minutes (%v)", err)
	}
	if _, err := f.Seek(a.at, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return // an incomplete line is read when it is complete
		}
		if err != nil {
			t.Fatal(err)
		}
		a.at += int64(len(line))
		a.note(t, line)
	}
}

func (a *auditLog) note(t *testing.T, line []byte) {
	t.Helper()
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		// A server that is killed while it writes a line leaves half of it.
		t.Logf("the audit log has an invalid line: %v", err)
		return
	}
	if r.Verb != "list" && r.Verb != "watch" || a.seen[r.ID] {
		return
	}
	for _, agent := range a.agents {
		if r.Agent == agent {
			a.seen[r.ID] = true
			a.found = append(a.found, r)
		}
	}
}

// count counts an agent's requests that were received in [from, to).
func (a *auditLog) count(agent string, from, to time.Time) (lists, watches int) {
	for i := range a.found {
		r := &a.found[i]
		if r.Agent != agent || r.Received.Before(from) || !r.Received.Before(to) {
			continue
		}
		if r.Verb == "list" {
			lists++
		} else {
			watches++
		}
	}
	return lists, watches
}

// came reports whether a request of the agent used this credential.
func (a *auditLog) came(agent, credential string) bool {
	for i := range a.found {
		if a.found[i].Agent == agent && a.found[i].credential() == credential {
			return true
		}
	}
	return false
}

func TestAuditLogCountsEachRequestOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	line := func(id, stage, verb, agent, at string) string {
		return fmt.Sprintf(`{"auditID":%q,"stage":%q,"verb":%q,"userAgent":%q,`+
			`"requestReceivedTimestamp":"2026-01-01T00:00:%s.000000Z"}`+"\n", id, stage, verb, agent, at)
	}
	a := &auditLog{path: path, agents: []string{"us", "them"}, seen: map[string]bool{}}
	first := line("1", "ResponseStarted", "watch", "us", "01") + line("2", "ResponseComplete", "list", "us", "02") +
		line("3", "ResponseComplete", "get", "us", "02") + line("4", "ResponseComplete", "list", "kubectl", "02")
	rest := line("1", "ResponseComplete", "watch", "us", "01") + line("5", "ResponseComplete", "list", "them",
		"03") + line("6", "ResponseStarted", "watch", "us", "09")
	check(t, os.WriteFile(path, []byte(first+rest[:30]), 0o600)) // the server has written half a line
	a.read(t)
	check(t, os.WriteFile(path, []byte(first+rest), 0o600))
	a.read(t)
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if lists, watches := a.count("us", from, from.Add(9*time.Second)); lists != 1 || watches != 1 {
		t.Errorf("ours: %d lists and %d watches, want 1 and 1", lists, watches)
	}
	if lists, watches := a.count("them", from, from.Add(time.Minute)); lists != 1 || watches != 0 {
		t.Errorf("theirs: %d lists and %d watches, want 1 and 0", lists, watches)
	}
}
