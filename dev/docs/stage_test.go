package docs

import (
	"bufio"
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
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/dev/testcluster"
)

// patience is how long a test waits for something that should take seconds.
const patience = 2 * time.Minute

// folder has everything that the commands need; TestMain creates and removes it.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	folder = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// program returns the path of mirador, built once.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatalf("build mirador: %v", err)
	}
	return path
}

// built builds mirador without debug information, which makes linking quicker.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "bin", "mirador")
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, root+"/cmd/mirador").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// stage is what the commands of the pages run on: a cluster that two contexts, eu and us, lead to, a daemon that
// mirrors both, another one with a token and TLS, and a folder with the files that the pages name.
type stage struct {
	work      string
	env       []string
	addresses *strings.Replacer // the addresses of the pages to those of the daemons
}

var pageAddress = regexp.MustCompile(`the page: +https?://([^/]+)/`)

func setStage(t *testing.T) *stage {
	t.Helper()
	go built() // while the cluster starts; program waits for it
	cluster := testcluster.Start(t, testcluster.WithoutControllers())
	s := &stage{work: filepath.Join(folder, "work")}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(s.work, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("kubeconfig", kubeconfig(t, cluster.Kubeconfig(), "eu", "us"))
	write("asia.yaml", kubeconfig(t, cluster.Kubeconfig(), "asia"))
	write("clusters/eu.yaml", kubeconfig(t, cluster.Kubeconfig(), "eu"))
	write("web.yaml", webDeployment)
	write("manifests/web.yaml", webDeployment)
	write("token", rand.Text())
	cert, key := certificate(t)
	write("tls.crt", cert)
	write("tls.key", key)
	write("clients.crt", cert)
	write("proxy.crt", cert)
	write("users.csv", rand.Text()+",alice,1001,\"developers,on-call\"\n")
	write("authentication.yaml", authentication)
	write("shop.yaml", shop)

	bin := filepath.Dir(program(t))
	devcluster, err := filepath.Abs(filepath.Join(root, "bin", "devcluster"))
	check(t, err)
	if other := os.Getenv("DEVCLUSTER"); other != "" {
		devcluster = other
	}
	check(t, os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\nexec "+devcluster+" kubectl \"$@\"\n"),
		0o700))
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+s.work,
		"KUBECONFIG="+filepath.Join(s.work, "kubeconfig"))

	cluster.Kubectl(t, "apply", "-f", filepath.Join(s.work, "shop.yaml"))
	plain := s.serve(t, "--all-contexts")
	secure := s.serve(t, "--context", "eu", "--tls-cert", "tls.crt", "--tls-key", "tls.key", "--token-file", "token")
	s.env = append(s.env, "MIRADOR_SERVER=http://"+plain)
	s.addresses = strings.NewReplacer("127.0.0.1:8090", plain, "mirror.example.com:8443", secure,
		"0.0.0.0:8443", "127.0.0.1:0")
	awaitReady(t, "http://"+plain)
	awaitReady(t, "https://"+secure)
	return s
}

// unreachableIssuer is an OIDC issuer on this machine that does not answer; a daemon starts all the same.
const unreachableIssuer = "https://127.0.0.1:1"

const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: "` + unreachableIssuer + `", audiences: [mirador]}
  claimMappings: {username: {claim: sub, prefix: "oidc:"}}
`

// serve starts a daemon that ends with the test, and returns its address.
func (s *stage) serve(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(program(t), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Env = s.work, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	first, _ := bufio.NewReader(out).ReadString('\n')
	m := pageAddress.FindStringSubmatch(first)
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v:\n%s", err, &errors)
		}
	})
	if m == nil {
		t.Fatalf("mirador serve %q printed %q", args, first)
	}
	return m[1]
}

func awaitReady(t *testing.T, url string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get(url + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready: %v", url, err)
		}
	}
}

// kubeconfig returns a kubeconfig with these contexts, all of which lead to the cluster of the given one.
func kubeconfig(t *testing.T, path string, contexts ...string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	check(t, err)
	only := config.Contexts[config.CurrentContext]
	clear(config.Contexts)
	for _, name := range contexts {
		config.Contexts[name] = only
	}
	config.CurrentContext = contexts[0]
	check(t, clientcmdapi.FlattenConfig(config))
	b, err := clientcmd.Write(*config)
	check(t, err)
	return string(b)
}

// certificate returns a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	check(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shop is what the cluster has when the commands run.
const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: shop}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, labels: {app: web}}
spec: {containers: [{name: web, image: "nginx:latest"}]}
---` + webDeployment

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:latest"}]}
`
