package clients

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// world is two real clusters with the same objects, and a daemon that mirrors both.
type world struct {
	eu, us *testcluster.Cluster
	folder string // for kubeconfigs
	url    string
	ca     []byte // of the daemon's certificate
}

// The users of the daemon. An administrator may read everything, and jane may read pods and events of namespace web.
const (
	admin = "admin"
	jane  = "jane"
)

// TestClients runs all clients on the same clusters and the same daemon, which take long to start.
func TestClients(t *testing.T) {
	w := startWorld(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"K9sShowsTheSameOfTheMirrorAndTheCluster", k9sShowsTheSameOfTheMirrorAndTheCluster},
		{"K9sOfAUserWithFewRightsShowsTheSame", k9sOfAUserWithFewRightsShowsTheSame},
		{"K9sAtFleetShowsTheRowsOfAllClusters", k9sAtFleetShowsTheRowsOfAllClusters},
		{"K9sOfAUserWithFewRightsAtFleetShowsItsPods", k9sOfAUserWithFewRightsAtFleetShowsItsPods},
		{"KubectlPrintsTheSameOfTheMirrorAndTheCluster", kubectlPrintsTheSameOfTheMirrorAndTheCluster},
		{"KubectlWatchShowsChanges", kubectlWatchShowsChanges},
		{"KubectlAtFleetFollowsNames", kubectlAtFleetFollowsNames},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

// startWorld starts the clusters and the daemon, and waits until the daemon shows the objects.
func startWorld(t *testing.T) *world {
	t.Helper()
	w := &world{eu: testcluster.Start(t), us: testcluster.StartAnother(t), folder: t.TempDir()}
	clusters := filepath.Join(w.folder, "clusters")
	check(t, os.Mkdir(clusters, 0o700))
	for name, c := range map[string]*testcluster.Cluster{"eu": w.eu, "us": w.us} {
		c.Kubectl(t, "apply", "-f", "testdata/objects.yaml")
		c.Kubectl(t, "rollout", "status", "-n", "web", "deployment/shop", "--timeout=2m")
		c.Kubectl(t, "rollout", "status", "-n", "web", "deployment/cart", "--timeout=2m")
		c.Kubectl(t, "rollout", "status", "-n", "db", "statefulset/store", "--timeout=2m")
		check(t, os.Symlink(c.Kubeconfig(), filepath.Join(clusters, name+".yaml")))
	}
	w.serve(t, clusters)
	return w
}

// serve starts the daemon and waits until it is ready.
func (w *world) serve(t *testing.T, clusters string) {
	t.Helper()
	address := freeAddress(t)
	w.url = "https://" + address
	tokens := filepath.Join(w.folder, "tokens.csv")
	check(t, os.WriteFile(tokens, fmt.Appendf(nil, "%s,%s,1,system:masters\n%s,%s,2\n", token(admin), admin, token(jane),
		jane), 0o600))
	certificate, key := w.writeCertificate(t)
	cmd := exec.Command(program("mirador"), "serve", "--folder", clusters, "--listen", address,
		"--token-auth-file", tokens, "--tls-cert", certificate, "--tls-key", key, "--secrets", "--include", "*")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	check(t, cmd.Start())
	t.Cleanup(func() {
		check(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("mirador serve: %v\n%s", err, output.String())
		}
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(2 * time.Minute); ; <-tick.C {
		resp, err := client.Get(w.url + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(late) {
			t.Fatalf("the daemon is not ready: %v\n%s", err, output.String())
		}
	}
}

func token(user string) string { return user + "-token" }

// kubeconfig writes a kubeconfig of a user of the daemon. The path is /fleet or /clusters/NAME.
func (w *world) kubeconfig(t *testing.T, user, path string) string {
	t.Helper()
	return w.writeKubeconfig(t, &clientcmdapi.Cluster{Server: w.url + path, CertificateAuthorityData: w.ca},
		&clientcmdapi.AuthInfo{Token: token(user)})
}

// realKubeconfig writes a kubeconfig of a user of cluster eu itself.
func (w *world) realKubeconfig(t *testing.T, user string) string {
	t.Helper()
	cfg := w.eu.Config()
	auth := &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
		ClientCertificate: cfg.CertFile, ClientKey: cfg.KeyFile}
	if user != admin {
		auth.Impersonate = user
	}
	return w.writeKubeconfig(t, &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthority: cfg.CAFile,
		CertificateAuthorityData: cfg.CAData}, auth)
}

func (w *world) writeKubeconfig(t *testing.T, cluster *clientcmdapi.Cluster, auth *clientcmdapi.AuthInfo) string {
	t.Helper()
	const name = "test"
	file, err := os.CreateTemp(w.folder, "kubeconfig-*")
	check(t, err)
	check(t, file.Close())
	check(t, clientcmd.WriteToFile(clientcmdapi.Config{CurrentContext: name,
		Clusters:  map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: auth},
		Contexts:  map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}}}, file.Name()))
	return file.Name()
}

// program returns the path of a program that make clients has built.
func program(name string) string { return filepath.Join("..", "..", "bin", name) }

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// writeCertificate writes a certificate for this machine and its key.
func (w *world) writeCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	check(t, err)
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	certificate, key = filepath.Join(w.folder, "tls.crt"), filepath.Join(w.folder, "tls.key")
	w.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	check(t, os.WriteFile(certificate, w.ca, 0o600))
	check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER}), 0o600))
	return certificate, key
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// podNames returns the names of a cluster's pods in namespace web.
func podNames(t *testing.T, c *testcluster.Cluster) []string {
	t.Helper()
	return strings.Fields(c.Kubectl(t, "get", "pods", "-n", "web", "-o", "jsonpath={.items[*].metadata.name}"))
}
