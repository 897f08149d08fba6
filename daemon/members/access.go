package members

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// access is a way to reach the cluster of a profile: its address and credentials, which are those of a Secret, or of a
// plugin.
type access struct {
	cluster json.RawMessage
	secret  *secretReference
	exec    *api.ExecConfig
}

// secretReference is the configuration of a built-in provider: the extension of the profile's cluster that a plugin of
// the same name would receive.
type secretReference struct {
	Name      string `json:"name"`
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
	Context   string `json:"context"`

	ClusterName string `json:"clusterName"` // of secretreader: the name of the Secret

	isToken bool // the Secret has a token, and not a kubeconfig
}

const (
	// execExtension is the extension of a cluster with the configuration of its credential plugin.
	execExtension = "client.authentication.k8s.io/exec"
	tokenKey      = "token"
)

// extension decodes an extension of a provider's cluster. ok is false if there is none.
func (a *accessProvider) extension(name string, into any) (ok bool, err error) {
	var cluster struct {
		Extensions []struct {
			Name      string          `json:"name"`
			Extension json.RawMessage `json:"extension"`
		} `json:"extensions"`
	}
	if err := json.Unmarshal(a.Cluster, &cluster); err != nil {
		return false, fmt.Errorf("its access provider %s has no cluster that can be read", a.Name)
	}
	for _, e := range cluster.Extensions {
		if e.Name == name {
			if json.Unmarshal(e.Extension, into) != nil {
				return true, fmt.Errorf("the extension %s of its access provider %s is malformed", name, a.Name)
			}
			return true, nil
		}
	}
	return false, nil
}

// kubeconfigSecret is the provider kubeconfig-secretreader: a Secret has a kubeconfig with the credentials.
func kubeconfigSecret(a *accessProvider, namespace string) (access, error) {
	ref, err := referenceOf(a, namespace)
	if err == nil && (ref.Name == "" || ref.Key == "") {
		err = fmt.Errorf("the extension %s of its access provider %s needs the name and the key of a Secret", execExtension,
			a.Name)
	}
	return access{cluster: a.Cluster, secret: ref}, err
}

// tokenSecret is the provider secretreader: a Secret has a token.
func tokenSecret(a *accessProvider, namespace string) (access, error) {
	ref, err := referenceOf(a, namespace)
	if err == nil && ref.ClusterName == "" {
		err = fmt.Errorf("the extension %s of its access provider %s needs the clusterName, which is the name of a Secret",
			execExtension, a.Name)
	}
	ref.Name, ref.isToken = ref.ClusterName, true
	return access{cluster: a.Cluster, secret: ref}, err
}

func referenceOf(a *accessProvider, namespace string) (*secretReference, error) {
	ref := &secretReference{}
	ok, err := a.extension(execExtension, ref)
	switch {
	case err != nil:
		return ref, err
	case !ok:
		return ref, fmt.Errorf("its access provider %s has no extension %s with the name of a Secret", a.Name, execExtension)
	case ref.Namespace != "" && ref.Namespace != namespace:
		return ref, fmt.Errorf("its credentials are in the namespace %s, and only Secrets of %s are read", ref.Namespace,
			namespace)
	}
	return ref, nil
}

// userIn returns the user of a kubeconfig with the credentials of a Secret. Errors have nothing of its content.
func (r *secretReference) userIn(s *corev1.Secret) (map[string]any, error) {
	if r.isToken {
		if token := string(s.Data[tokenKey]); token != "" {
			return map[string]any{"token": token}, nil
		}
		return nil, fmt.Errorf("the Secret %s has no key %q", r.Name, tokenKey)
	}
	config, err := clientcmd.Load(s.Data[r.Key])
	if err != nil || len(s.Data[r.Key]) == 0 {
		return nil, fmt.Errorf("the key %q of the Secret %s has no kubeconfig", r.Key, r.Name)
	}
	name := r.Context
	if name == "" {
		name = config.CurrentContext
	}
	context := config.Contexts[name]
	if context == nil {
		return nil, fmt.Errorf("the kubeconfig in the Secret %s does not have the context %q", r.Name, name)
	}
	user := config.AuthInfos[context.AuthInfo]
	if user == nil {
		return nil, fmt.Errorf("the kubeconfig in the Secret %s has no user for the context %q", r.Name, name)
	}
	out := map[string]any{}
	if user.Token != "" {
		out["token"] = user.Token
	}
	if len(user.ClientCertificateData) > 0 && len(user.ClientKeyData) > 0 {
		out["client-certificate-data"], out["client-key-data"] = user.ClientCertificateData, user.ClientKeyData
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the kubeconfig in the Secret %s has neither a token nor client-certificate-data with "+
			"client-key-data; other credentials are not used", r.Name)
	}
	return out, nil
}
