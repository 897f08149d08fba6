package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// maxKubeconfig bounds the size of a kubeconfig.
const maxKubeconfig = 1 << 20

// JoinKubeconfig adds a cluster at run time by a kubeconfig of a client, and writes it to
// the state file. context selects one of its contexts; "" is the current one. Fields that
// would run or read something on this machine are refused, and the error names the field:
// exec and auth-provider plugins, file paths, proxies other than HTTP. Only the parts that
// the context uses are checked and kept.
func (f *Fleet) JoinKubeconfig(name string, kubeconfig []byte, context string) error {
	checked, err := checkedConfig(kubeconfig, context)
	if err != nil {
		return fmt.Errorf("join cluster %q: %w", name, err)
	}
	return f.joinChecked(name, checked, func() error { return f.save(name, checked) })
}

// joinChecked joins a cluster of a client's kubeconfig. save is as for join.
func (f *Fleet) joinChecked(name string, checked kubeContext, save func() error) error {
	c, err := f.join(name, checked.cfg, Origin{FromJoin, serverOf(checked.cfg)}, save)
	if err != nil {
		return err
	}
	c.server.Store(checked.server)
	return nil
}

// save writes a cluster to the state file, if there is one. Fleet.membership is locked.
func (f *Fleet) save(name string, checked kubeContext) error {
	if f.state == nil {
		return nil
	}
	return f.state.add(name, []byte(checked.text))
}

// RejoinKubeconfig makes a cluster that joined by JoinKubeconfig use the credentials and the address of another
// kubeconfig, and writes that to the state file. Nothing is relisted, and no watch ends. It wraps ErrExists if the
// kubeconfig leads to another cluster, which may take a request to find out, or if the cluster joined in another way.
func (f *Fleet) RejoinKubeconfig(ctx context.Context, name string, kubeconfig []byte, contextName string) error {
	fail := func(err error) error { return fmt.Errorf("join cluster %q again: %w", name, err) }
	checked, err := checkedConfig(kubeconfig, contextName)
	if err != nil {
		return fail(err)
	}
	c, ok := f.Cluster(name)
	if !ok {
		return fail(ErrUnknown)
	}
	if c.origin.Kind != FromJoin {
		return fail(fmt.Errorf("it is from a %s, which has its credentials: %w", c.origin.Kind, ErrExists))
	}
	switch same, err := c.reconfigure(ctx, checked.cfg, c.server.Load(), checked.server); {
	case errors.Is(err, errOtherServer):
		return fail(fmt.Errorf("%w; let it leave first: %w", err, ErrExists))
	case err != nil:
		return fail(err)
	case !same:
		return fail(fmt.Errorf("the kubeconfig leads to another cluster, or to one that does not answer: %w", ErrExists))
	}
	f.membership.Lock()
	defer f.membership.Unlock()
	if now, ok := f.Cluster(name); !ok || now != c {
		return fail(ErrUnknown)
	}
	c.server.Store(checked.server)
	if err := f.save(name, checked); err != nil {
		return fail(fmt.Errorf("the new credentials are used, but not after a restart: %w", err))
	}
	return nil
}

// checkedConfig parses one context of a client's kubeconfig. Its text has only the parts
// that the context uses.
func checkedConfig(kubeconfig []byte, context string) (kubeContext, error) {
	one, err := checkedContext(kubeconfig, context)
	if err != nil {
		return kubeContext{}, err
	}
	return newContext(one)
}

// checkedContext returns one context of a kubeconfig that can neither run nor read anything on this machine.
func checkedContext(kubeconfig []byte, context string) (*api.Config, error) {
	if len(kubeconfig) > maxKubeconfig {
		return nil, fmt.Errorf("the kubeconfig is larger than %d bytes", maxKubeconfig)
	}
	whole, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be read; give it as YAML or JSON, as kubectl config view "+
			"--raw --flatten prints it: %w", unquoted(err))
	}
	one, err := oneContext(whole, context)
	if err != nil {
		return nil, err
	}
	return one, refuse(one)
}

var (
	lineOfError  = regexp.MustCompile(`line \d+`)
	fieldOfError = regexp.MustCompile(`Go struct field \w+\.([a-z-]+)`)
)

// unquoted replaces a parser's error, which may quote keys from the kubeconfig.
func unquoted(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if line := lineOfError.FindString(err.Error()); line != "" {
		return fmt.Errorf("it is not a kubeconfig: malformed at %s", line)
	}
	if m := fieldOfError.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("it is not a kubeconfig: the field %s is of the wrong type", m[1])
	}
	return errors.New("it is not a kubeconfig: it must be YAML or JSON with the fields clusters, users and contexts")
}

// oneContext returns a kubeconfig with one context of another and the parts that it uses.
func oneContext(whole *api.Config, context string) (*api.Config, error) {
	if context == "" {
		context = whole.CurrentContext
	}
	chosen := whole.Contexts[context]
	if chosen == nil {
		names := slices.Sorted(maps.Keys(whole.Contexts))
		if context == "" {
			return nil, fmt.Errorf("the kubeconfig has no current-context; name one of its contexts: %s", orNone(names))
		}
		return nil, fmt.Errorf("the kubeconfig has no context %q; it has: %s", context, orNone(names))
	}
	cluster := whole.Clusters[chosen.Cluster]
	if cluster == nil {
		return nil, fmt.Errorf("context %q names the cluster %q, which the kubeconfig does not have",
			context, chosen.Cluster)
	}
	user := whole.AuthInfos[chosen.AuthInfo]
	if user == nil && chosen.AuthInfo != "" {
		return nil, fmt.Errorf("context %q names the user %q, which the kubeconfig does not have", context, chosen.AuthInfo)
	}
	one := api.NewConfig()
	one.CurrentContext = context
	one.Contexts[context] = chosen
	one.Clusters[chosen.Cluster] = cluster
	if user != nil {
		one.AuthInfos[chosen.AuthInfo] = user
	}
	return one, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// refuse returns an error if a kubeconfig of one context would use something on this
// machine.
func refuse(one *api.Config) error {
	for name, c := range one.Clusters {
		if c.CertificateAuthority != "" {
			return refused("cluster", name, "certificate-authority", "names a file; give certificate-authority-data")
		}
		if u, err := url.Parse(c.Server); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return refused("cluster", name, "server", "is not an http or https URL")
		}
		if c.ProxyURL != "" {
			if u, err := url.Parse(c.ProxyURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return refused("cluster", name, "proxy-url", "is not an http or https URL")
			}
		}
	}
	for name, u := range one.AuthInfos {
		switch {
		case u.Exec != nil:
			return refused("user", name, "exec", "runs a program; give a token or a client certificate")
		case u.AuthProvider != nil:
			return refused("user", name, "auth-provider", "runs a plugin; give a token or a client certificate")
		case u.ClientCertificate != "":
			return refused("user", name, "client-certificate", "names a file; give client-certificate-data")
		case u.ClientKey != "":
			return refused("user", name, "client-key", "names a file; give client-key-data")
		case u.TokenFile != "":
			return refused("user", name, "tokenFile", "names a file; give token")
		}
	}
	return nil
}

func refused(what, name, field, why string) error {
	return fmt.Errorf("%s %q of the kubeconfig: %s %s", what, name, field, why)
}

// configOf returns the client configuration of a kubeconfig with one context.
func configOf(one *api.Config) (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*one, one.CurrentContext,
		&clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("context %q of the kubeconfig is not usable: %w", one.CurrentContext, err)
	}
	return cfg, nil
}

// FromKubeconfig reads contexts of the operator's own kubeconfig, or all if none is named. The path may be a list, as
// for LoadKubeconfig.
// The keys of the result are the names of the clusters: the contexts' names as DNS labels.
// Plugins and paths are allowed.
func FromKubeconfig(path string, contexts ...string) (map[string]*rest.Config, error) {
	read, err := readContexts(path, contexts)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	named, err := byCluster(read, dnsLabel)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	out := make(map[string]*rest.Config, len(named))
	for name, c := range named {
		out[name] = c.cfg
	}
	return out, nil
}

// kubeContext is one context of a kubeconfig.
type kubeContext struct {
	context string
	text    string // a kubeconfig of this context, to detect changes
	server  *api.Cluster
	cfg     *rest.Config
}

// DefaultKubeconfig returns the kubeconfig that kubectl uses without --kubeconfig: ~/.kube/config, or the file of
// $KUBECONFIG, or the list of its files if several exist.
func DefaultKubeconfig() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		return rules.GetDefaultFilename()
	}
	var files []string
	for _, path := range rules.Precedence {
		if _, err := os.Stat(path); err == nil {
			files = append(files, path)
		}
	}
	if len(files) < 2 {
		return rules.GetDefaultFilename()
	}
	return strings.Join(files, string(filepath.ListSeparator))
}

// LoadKubeconfig reads a kubeconfig; several in a list, as in $KUBECONFIG, are merged as by kubectl. Paths in it are
// relative to the file that has them. Errors do not quote the content, because it has keys.
func LoadKubeconfig(path string) (*api.Config, error) {
	whole, err := loadFiles(filesOf(path))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	return whole, nil
}

// filesOf splits a list of files. A file whose name is like a list is one file.
func filesOf(path string) []string {
	if _, err := os.Stat(path); err == nil {
		return []string{path}
	}
	files := slices.DeleteFunc(filepath.SplitList(path), func(file string) bool { return file == "" })
	if len(files) < 2 {
		return []string{path}
	}
	return files
}

func loadFiles(files []string) (*api.Config, error) {
	for _, path := range files {
		err := checkFile(path)
		if err != nil && len(files) > 1 {
			return nil, fmt.Errorf("%s: %w", path, err)
		} else if err != nil {
			return nil, err
		}
	}
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: files[0]} // paths in it are relative to the file
	if len(files) > 1 {
		rules = clientcmd.ClientConfigLoadingRules{Precedence: files}
	}
	whole, err := rules.Load()
	if err != nil {
		return nil, unquoted(err)
	}
	return whole, nil
}

// checkFile returns an error for a path that is not that of a file of the size of a kubeconfig.
func checkFile(path string) error {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return unquoted(err)
	case info.IsDir():
		return errors.New("it is a folder, not a file")
	case info.Size() > maxKubeconfig:
		return fmt.Errorf("it is larger than %d bytes", maxKubeconfig)
	}
	return nil
}

// readContexts reads contexts of a kubeconfig, or all if none is named.
func readContexts(path string, contexts []string) ([]kubeContext, error) {
	whole, err := loadFiles(filesOf(path))
	if err != nil {
		return nil, err
	}
	if len(contexts) == 0 {
		contexts = slices.Sorted(maps.Keys(whole.Contexts))
	}
	if len(contexts) == 0 {
		return nil, errors.New("it has no contexts, which a kubeconfig has; kubectl config get-contexts shows those of a " +
			"file")
	}
	var out []kubeContext
	for _, name := range contexts {
		one, err := oneContext(whole, name)
		if err != nil {
			return nil, err
		}
		c, err := newContext(one)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// newContext returns the context of a kubeconfig that has only one.
func newContext(one *api.Config) (c kubeContext, err error) {
	c.context = one.CurrentContext
	c.server = one.Clusters[one.Contexts[c.context].Cluster]
	if c.cfg, err = configOf(one); err != nil {
		return c, err
	}
	text, err := clientcmd.Write(*one)
	if err != nil {
		return c, fmt.Errorf("write context %q of the kubeconfig: %w", c.context, err)
	}
	c.text = string(text)
	return c, nil
}

// maxLabel is the greatest length of a DNS label.
const maxLabel = 63

// dnsLabel converts a name to a DNS label, or to "" if no character is usable.
func dnsLabel(name string) string {
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
	label = strings.TrimLeft(label, "-")
	return strings.TrimRight(label[:min(len(label), maxLabel)], "-")
}

// serverOf returns a server's address without user and password.
func serverOf(cfg *rest.Config) string {
	u, err := url.Parse(cfg.Host)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}
