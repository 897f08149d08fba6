package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// inlined reads one context of a kubeconfig and includes the files that it names. Errors do not quote the content,
// because it has keys.
func inlined(path, context string) ([]byte, error) {
	cfg, err := loadKubeconfig(path)
	if err != nil {
		return nil, usagef("%w; name another with --kubeconfig", err)
	}
	if context != "" {
		cfg.CurrentContext = context
	}
	if cfg.CurrentContext == "" {
		return nil, usagef("the kubeconfig %s has no current context; name one with --context", path)
	}
	if err := api.MinifyConfig(cfg); err != nil {
		return nil, usagef("the kubeconfig %s has no usable context %q; kubectl config get-contexts shows what it has",
			path, cfg.CurrentContext)
	}
	for name, u := range cfg.AuthInfos {
		if err := inlineUser(u, filepath.Dir(path)); err != nil {
			return nil, usagef("user %q of the kubeconfig %s: %w", name, path, err)
		}
	}
	if err := api.FlattenConfig(cfg); err != nil {
		return nil, usagef("put the certificates into the kubeconfig: %w", err)
	}
	for _, c := range cfg.Clusters {
		c.Extensions = nil
	}
	out, err := clientcmd.Write(*cfg)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return out, nil
}

// inlineUser includes the token of a user, and refuses what cannot be sent.
func inlineUser(u *api.AuthInfo, folder string) error {
	switch {
	case u.Exec != nil:
		return errors.New("it runs a program to log in, which a daemon will not do; make a service account and give its " +
			"token")
	case u.AuthProvider != nil:
		return errors.New("it logs in by a plugin, which a daemon will not do; make a service account and give its token")
	case u.TokenFile == "":
		return nil
	}
	file := u.TokenFile
	if !filepath.IsAbs(file) {
		file = filepath.Join(folder, file)
	}
	b, err := readSmall(file)
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	u.Token, u.TokenFile = strings.TrimSpace(string(b)), ""
	return nil
}
