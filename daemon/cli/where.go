package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/mirador-k8s/mirador/daemon/fleet"
)

const (
	defaultServer = "http://127.0.0.1:8090"
	// answerTime is how long a daemon has for the answer to whether it is there.
	answerTime = 5 * time.Second
)

// daemonFlags select the daemon.
type daemonFlags struct{ server, tokenFile, caFile string }

func (d *daemonFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&d.server, "server", "", "`URL` of the daemon (default: $MIRADOR_SERVER, else "+defaultServer+")")
	flags.StringVar(&d.tokenFile, "token-file", "", "`file` with the daemon's token (default: $MIRADOR_TOKEN_FILE)")
	flags.StringVar(&d.caFile, "certificate-authority", "", "`file` with the certificate authority of an https daemon")
}

// session returns a session with the selected daemon, or else with that of this machine.
func (d *daemonFlags) session(warn io.Writer) (s *session, named bool, err error) {
	server, token := d.server, d.tokenFile
	if server == "" {
		server = os.Getenv("MIRADOR_SERVER")
	}
	if token == "" {
		token = os.Getenv("MIRADOR_TOKEN_FILE")
	}
	if named = server != ""; !named {
		server = defaultServer
	}
	s, err = newDaemonSession(server, token, d.caFile, warn)
	return s, named, err
}

// need returns a session with a daemon that answers, or an error.
func (d *daemonFlags) need(ctx context.Context, warn io.Writer) (*session, error) {
	s, _, err := d.session(warn)
	if err != nil {
		return nil, err
	}
	if err := s.probe(ctx, answerTime); err != nil {
		s.close()
		if isCertificateError(err) || errors.Is(err, errWantsHTTP) || errors.Is(err, errWantsHTTPS) {
			return nil, err
		}
		return nil, unreachable(fmt.Errorf("no daemon answers at %s; start one with mirador serve, or name it with --server",
			s.base.Host))
	}
	return s, nil
}

// kubeFlags select a cluster by the user's own kubeconfig.
type kubeFlags struct {
	kubeconfig string
	contexts   []string
}

// path returns the kubeconfig's path, or a list of paths, as in $KUBECONFIG.
func (k *kubeFlags) path() string {
	if k.kubeconfig != "" {
		return k.kubeconfig
	}
	return fleet.DefaultKubeconfig()
}

// loadKubeconfig reads a kubeconfig. Errors do not quote the content, because it has keys.
func loadKubeconfig(path string) (*api.Config, error) {
	if cfg, err := clientcmd.LoadFromFile(path); err == nil {
		return cfg, nil
	}
	return fleet.LoadKubeconfig(path)
}

// readFlags select where a command reads from.
type readFlags struct {
	daemonFlags
	kubeFlags
}

func (r *readFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	r.daemonFlags.add(flags)
	flags.StringVar(&r.kubeconfig, "kubeconfig", "", "read the clusters of this kubeconfig `file` instead of a daemon's")
	flags.StringSliceVar(&r.contexts, "context", nil,
		"`context` of the kubeconfig, may be repeated (default: the current one)")
	complete(cmd, "context", r.completeContexts)
}

// open returns a session: with the selected daemon, or with a server in this process if a kubeconfig or context was
// selected, or else with the daemon of this machine, or if nothing listens there with a server for the current context.
func (r *readFlags) open(ctx context.Context, n need, warn io.Writer) (*session, error) {
	direct := r.kubeconfig != "" || len(r.contexts) > 0
	if direct && r.server != "" {
		return nil, usagef("--server reads from a daemon, --kubeconfig and --context from clusters; give one of the two")
	}
	if direct {
		return openInProcess(ctx, &r.kubeFlags, n, warn)
	}
	s, named, err := r.session(warn)
	if err != nil {
		return nil, err
	}
	if named {
		return s, nil
	}
	listens, err := s.listens(ctx)
	if err == nil && listens {
		return s, nil
	}
	s.close()
	if err != nil {
		return nil, err
	}
	if cfg, err := loadKubeconfig(r.path()); err == nil && cfg.CurrentContext != "" {
		fmt.Fprintf(warn, "no daemon at %s; reading context %s directly\n", s.base.Host, clean(cfg.CurrentContext))
	}
	own, err := openInProcess(ctx, &r.kubeFlags, n, warn)
	if err != nil && ExitCode(err) != exitFailed {
		return nil, fmt.Errorf("no daemon answers at %s, and without one: %w; start one with mirador serve, or name one "+
			"with --server", defaultServer, err)
	}
	return own, err
}
