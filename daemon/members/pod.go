package members

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// ServiceAccountFolder is where a pod has the credentials of its service account.
const ServiceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// ErrNoPod is the error of InPod for a process that does not run in a pod.
var ErrNoPod = errors.New("this process does not run in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT " +
	"are not set")

// InPod returns how a process in a pod reaches its cluster, and the pod's namespace. The token is read again when the
// kubelet replaces it. It does what rest.InClusterConfig does, for any folder, and fails without the certificate
// authority of the cluster, which would otherwise be replaced by those of the image.
func InPod(env func(string) string, folder string) (cfg *rest.Config, namespace string, err error) {
	host, port := env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, "", ErrNoPod
	}
	tokenFile, caFile := filepath.Join(folder, "token"), filepath.Join(folder, "ca.crt")
	fail := func(err error) (*rest.Config, string, error) {
		return nil, "", fmt.Errorf("read the pod's service account: %w; the pod needs automountServiceAccountToken: true",
			err)
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return fail(err)
	}
	if _, err := certutil.NewPool(caFile); err != nil {
		return fail(err)
	}
	name, err := os.ReadFile(filepath.Join(folder, "namespace"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	return &rest.Config{Host: "https://" + net.JoinHostPort(host, port), BearerToken: strings.TrimSpace(string(token)),
			BearerTokenFile: tokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: caFile}},
		strings.TrimSpace(string(name)), nil
}
