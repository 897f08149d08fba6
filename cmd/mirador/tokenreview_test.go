package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// A service account authenticates with the token that its cluster has given it, has its rights of the cluster, and is
// refused when the account is deleted.
func TestServiceAccountsAuthenticateByReviewsOfARealCluster(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	_, admin := clients(t, cluster)
	ctx, ns := t.Context(), cluster.Namespace(t)
	meta := metav1.ObjectMeta{Name: "robot"}
	account, err := admin.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta},
		metav1.CreateOptions{})
	check(t, err)
	_, err = admin.RbacV1().Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}},
		metav1.CreateOptions{})
	check(t, err)
	_, err = admin.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: meta.Name}}}, metav1.CreateOptions{})
	check(t, err)
	_, err = admin.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	check(t, err)
	newToken := func(audiences ...string) string {
		t.Helper()
		request, err := admin.CoreV1().ServiceAccounts(ns).CreateToken(ctx, account.Name,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}},
			metav1.CreateOptions{})
		check(t, err)
		return request.Status.Token
	}

	dir := t.TempDir()
	config, tokens := filepath.Join(dir, "config"), filepath.Join(dir, "token")
	check(t, os.WriteFile(config, kubeconfig(t, cluster, "reviewing", "eu"), 0o600))
	check(t, os.WriteFile(tokens, []byte(token), 0o600))
	d := begin(t, httpClient(t, &rest.Config{BearerToken: token}), "--listen", "127.0.0.1:0", "--token-file", tokens,
		"--kubeconfig", config, "--include", "configmaps", "--include", "namespaces", "--include",
		"*.rbac.authorization.k8s.io", "--authentication-token-review", "eu")
	d.ready(t, "eu")

	client, robot := plain(t), newToken()
	path := "/clusters/eu/api/v1/namespaces/" + ns + "/configmaps"
	get := func(path, token string) (int, string) {
		t.Helper()
		code, _, body := d.request(t, client, http.MethodGet, path, "Bearer "+token)
		return code, body
	}
	until(t, func() string {
		if code, body := get(path, robot); code != http.StatusOK || !strings.Contains(body, `"robot"`) {
			return fmt.Sprintf("the account is answered %d %.300s", code, body)
		}
		return ""
	})
	name := "system:serviceaccount:" + ns + ":robot"
	if code, body := get("/clusters/eu/api/v1/namespaces", robot); code != http.StatusForbidden ||
		!strings.Contains(body, fmt.Sprintf(`User \"%s\" cannot list resource \"namespaces\"`, name)) {
		t.Errorf("a request without a right is answered %d %s", code, body)
	}
	for what, other := range map[string]string{"changed": robot[:len(robot)-10] + "AAAAAAAAAA", "for others": newToken("x")} {
		if code, body := get(path, other); code != http.StatusUnauthorized {
			t.Errorf("a token that is %s is answered %d %s", what, code, body)
		}
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.at+path+"?watch=true", nil)
	check(t, err)
	r.Header.Set("Authorization", "Bearer "+robot)
	watch, err := client.Do(r)
	check(t, err)
	defer watch.Body.Close()
	check(t, admin.CoreV1().ServiceAccounts(ns).Delete(ctx, account.Name, metav1.DeleteOptions{}))
	until(t, func() string { // the cluster uses the result of a review for 10 seconds, and so does the daemon
		if code, body := get(path, robot); code != http.StatusUnauthorized {
			return fmt.Sprintf("the account that was deleted is answered %d %.300s", code, body)
		}
		return ""
	})
	last := ""
	for lines := bufio.NewScanner(watch.Body); lines.Scan(); { // ends when the credentials are checked again
		last = lines.Text()
	}
	if !strings.Contains(last, `"code":410`) {
		t.Errorf("the watch of the account ends with %s", last)
	}
	if said := d.said(t); strings.Contains(said, robot[:40]) || strings.Contains(said, robot[len(robot)-40:]) {
		t.Error("the log shows the token")
	}
}
