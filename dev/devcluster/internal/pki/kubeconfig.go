package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes, with mode 0600, a kubeconfig through which the named
// client reaches the API server at url. Certificates and key are inside it, so
// the file can be copied. cluster becomes the name of its context.
func (d Dir) WriteKubeconfig(path, cluster, client, url string) error {
	var files [3][]byte
	for i, p := range []string{d.Bundle(), d.Cert(client), d.Key(client)} {
		b, err := os.ReadFile(p)
		if err != nil {
			return fmt.Errorf("write kubeconfig %s: %w", path, err)
		}
		files[i] = b
	}
	user := cluster + "-" + client
	data, err := clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{cluster: {Server: url, CertificateAuthorityData: files[0]}},
		AuthInfos:      map[string]*api.AuthInfo{user: {ClientCertificateData: files[1], ClientKeyData: files[2]}},
		Contexts:       map[string]*api.Context{cluster: {Cluster: cluster, AuthInfo: user}},
		CurrentContext: cluster,
	})
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	// The file is replaced atomically, because the API server's port can change when a cluster is resumed.
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
