package daemon

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/bench/rights"
)

// revokedIn is the namespace in which users have the rights that are withdrawn.
const revokedIn = "revocation"

// MeasureRevocations gives each of the users a RoleBinding in a real cluster and opens a watch as each, every second
// one at /fleet and the others at /clusters. Then it deletes the bindings one after the other, a number per second, and
// measures the time from each delete request until the client has read the last event of its watch. A watch that ends
// otherwise than with 410, or before its binding is deleted, is an error.
func (f *Fleet) MeasureRevocations(ctx context.Context, users []rights.User, perSecond int) (Latency, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfigs[0])
	if err != nil {
		return Latency{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Latency{}, fmt.Errorf("make a client: %w", err)
	}
	if err := grant(ctx, client, users); err != nil {
		return Latency{}, err
	}
	var watches []*revokedWatch
	defer func() {
		for _, w := range watches {
			w.body.Close()
		}
	}()
	for i := range users {
		body, err := f.openGranted(ctx, &users[i], i)
		if err != nil {
			return Latency{}, err
		}
		w := &revokedWatch{body: body, ended: make(chan error, 1)}
		watches = append(watches, w)
		go w.read() // ends with the body
	}
	began := time.Now()
	for i := range users {
		time.Sleep(time.Duration(i)*time.Second/time.Duration(perSecond) - time.Since(began))
		select {
		case err := <-watches[i].ended:
			return Latency{}, fmt.Errorf("the watch of %s has ended before its right was withdrawn: %w", users[i].Name, err)
		default:
		}
		watches[i].withdrawn = time.Now()
		if err := client.RbacV1().RoleBindings(revokedIn).Delete(ctx, users[i].Name, metav1.DeleteOptions{}); err != nil {
			return Latency{}, fmt.Errorf("withdraw a right: %w", err)
		}
	}
	var took []time.Duration
	for i, w := range watches {
		select {
		case err := <-w.ended:
			if !errors.Is(err, errGone) {
				return Latency{}, fmt.Errorf("the watch of %s ended with %w, want 410", users[i].Name, err)
			}
		case <-ctx.Done():
			return Latency{}, fmt.Errorf("the watch of %s does not end: %w", users[i].Name, ctx.Err())
		}
		took = append(took, w.at.Sub(w.withdrawn))
	}
	return Latency{P50: measure.Percentile(took, 0.5), P99: measure.Percentile(took, 0.99)}, nil
}

// grant creates a role and a binding to it for each user.
func grant(ctx context.Context, client kubernetes.Interface, users []rights.User) error {
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: revokedIn}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make the namespace of rights: %w", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}}}
	if _, err := client.RbacV1().Roles(revokedIn).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make a role: %w", err)
	}
	for i := range users {
		_, err := client.RbacV1().RoleBindings(revokedIn).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: users[i].Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: users[i].Name}},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("bind a role: %w", err)
		}
	}
	return nil
}

// openGranted opens a watch of a user as soon as the daemon knows of its right.
func (f *Fleet) openGranted(ctx context.Context, u *rights.User, i int) (body io.ReadCloser, err error) {
	path := fmt.Sprintf("/clusters/%s/api/v1/namespaces/%s/pods?watch=true", realName(0), revokedIn)
	if i%2 == 0 {
		path = "/fleet/api/v1/pods?watch=true"
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if body, err = f.openAs(ctx, u.Token(), path, "", false); err == nil {
			return body, nil
		}
	}
	return nil, fmt.Errorf("the right of %s does not arrive: %w", u.Name, err)
}

// revokedWatch is an open watch whose user loses its right.
type revokedWatch struct {
	body      io.ReadCloser
	withdrawn time.Time
	at        time.Time // of the last line, set before ended receives
	ended     chan error
}

var errGone = errors.New("410")

// read reads the watch to its end.
func (w *revokedWatch) read() {
	lines := bufio.NewReader(w.body)
	for {
		line, err := lines.ReadBytes('\n')
		w.at = time.Now()
		switch {
		case bytes.HasPrefix(line, []byte(`{"type":"ERROR"`)) && bytes.Contains(line, []byte(`"code":410`)):
			w.ended <- errGone
			return
		case err != nil:
			w.ended <- err
			return
		}
	}
}
