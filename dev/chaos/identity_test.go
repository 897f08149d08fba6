package chaos

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// files are a user's credentials and trusted authorities, in files that a config names and that are replaced while it
// is in use.
type files struct{ ca, cert, key string }

func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	return &files{ca: filepath.Join(dir, "ca.crt"), cert: filepath.Join(dir, "client.crt"),
		key: filepath.Join(dir, "client.key")}
}

// replace replaces a file atomically.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	check(t, os.WriteFile(path+".new", content, 0o600))
	check(t, os.Rename(path+".new", path))
}

// group is the group of the users of all fleets, which gives them their rights.
const group = "chaos"

// renew makes the cluster sign a new client certificate for the user and writes it to the files. It returns the
// certificate's name in the audit log.
func (f *files) renew(t *testing.T, ctx context.Context, client kubernetes.Interface, user string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{group}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	check(t, err)
	csrs := client.CertificatesV1().CertificateSigningRequests()
	csr, err := csrs.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: user + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		}}, metav1.CreateOptions{})
	check(t, err)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Chaos",
		Message: "approved by the test"})
	_, err = csrs.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	check(t, err)
	var cert []byte
	until(t, ctx, func(ctx context.Context) string {
		csr, err = csrs.Get(ctx, csr.Name, metav1.GetOptions{})
		if err != nil || len(csr.Status.Certificate) == 0 {
			return fmt.Sprintf("the certificate of %s was not signed: %v", user, err)
		}
		cert = csr.Status.Certificate
		return ""
	})
	keyDER, err := x509.MarshalECPrivateKey(key)
	check(t, err)
	replace(t, f.key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	replace(t, f.cert, cert)
	block, _ := pem.Decode(cert)
	if block == nil {
		t.Fatalf("the certificate of %s is not PEM", user)
	}
	sum := sha256.Sum256(block.Bytes)
	return "X509SHA256=" + hex.EncodeToString(sum[:])
}
