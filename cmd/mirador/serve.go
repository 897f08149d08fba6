package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/mirador-k8s/mirador/daemon/access"
	"github.com/mirador-k8s/mirador/daemon/audit"
	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/identity"
	"github.com/mirador-k8s/mirador/daemon/server"
	"github.com/mirador-k8s/mirador/daemon/web"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	kubeconfig       string
	contexts         []string
	allContexts      bool
	folder           string
	home             homeFlags
	listen           string
	probeListen      string
	shutdownDelay    time.Duration
	tlsCert, tlsKey  string
	tokenFile        string
	authentication   authenticationFlags
	login            loginFlags
	authorization    string
	accessFile       string
	hosts            []string
	include, exclude []string
	secrets          bool
	secretData       bool
	redact           []string
	stateFile        string
	historyBytes     int
	historyAge       time.Duration
	limits           fleet.Limits
	startGrace       time.Duration
	logFormat        string
	logLevel         string
	level            slog.LevelVar
	config           string
	file             *configFile // of --config; nil if there is none
	audit            audit.Options
	data             dataFlags
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Mirror clusters and serve them, with a web page",
		Long: `Mirror clusters and serve them read-only as the Kubernetes API: one cluster below
/clusters/NAME, all of them at once below /fleet, and a page at /.

Without flags for clusters, the current context of your kubeconfig is mirrored. In a pod without a kubeconfig it is the
cluster of the pod, as the member "home", with the pod's service account.

With --data the mirror is kept in a folder, and a restart serves it at once: each watch resumes where it was, and
nothing is listed that has not changed. Until its cluster has confirmed it, an answer has a warning and the header
Mirador-Restored.

After a start /fleet is 503 until every cluster is read, or has been unreachable for --start-grace:
a client that lists must not take clusters that are not read yet for deleted ones. After that, a cluster that
was never read is left out and named in a warning; ?complete=true asks for 503 instead.

The files of kubeconfigs, tokens, certificates, authentication and access, and that of --config, are read again when
they change, and at once on SIGHUP.
SIGTERM and Ctrl-C finish the requests that are being answered, for ten seconds at most, and end; with
--shutdown-delay, /readyz fails that long before, and requests go on.

Every flag can also be given in the environment, as MIRADOR_ and the flag's name in capitals
(MIRADOR_LISTEN, MIRADOR_TOKEN_FILE, …), or in a file of YAML named by --config, a line each:
"listen: 127.0.0.1:8090", "max-objects: 500000", "context: [eu, us]", "history-age: 30m", "secrets: true".
A flag counts before the environment, and that before the file.`,
		Example: `  # the current context of your kubeconfig, on 127.0.0.1:8090
  mirador serve

  # two contexts by name
  mirador serve --context eu --context us

  # a folder of kubeconfigs: a file added is a cluster joining
  mirador serve --folder /etc/mirador/clusters

  # in a pod: its own cluster, and those of the Secrets with a label in its namespace
  mirador serve --home home --member-secrets mirador.dev/member=true

  # a restart lists nothing, and serves what was there before
  mirador serve --folder /etc/mirador/clusters --data /var/lib/mirador

  # for other machines: a certificate and a way to authenticate users are needed
  mirador serve --listen 0.0.0.0:8443 --allow-host mirror.example.com \
    --tls-cert tls.crt --tls-key tls.key --token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.file, err = applySettings(cmd.Flags(), os.LookupEnv, f.config); err != nil {
				return usageError{err}
			}
			if err := errors.Join(checkAuditFlags(cmd.Flags()), f.data.check(cmd.Flags())); err != nil {
				return usageError{err}
			}
			return serve(cmd.Context(), &f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig `file`, which is followed: new credentials are used (default: $KUBECONFIG, or ~/.kube/config)")
	flags.StringSliceVar(&f.contexts, "context", nil,
		"`context` of the kubeconfig to mirror, may be repeated (default: the current one)")
	flags.BoolVar(&f.allContexts, "all-contexts", false, "mirror every context of the kubeconfig")
	flags.StringVar(&f.folder, "folder", "",
		"`folder` of kubeconfigs; a file added or removed is a cluster joining or leaving, and one with other "+
			"credentials changes no more than those")
	f.home.add(flags)
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8090",
		"`address` to serve on; any but this machine's own needs a certificate and a way to authenticate users")
	flags.StringVar(&f.probeListen, "probe-listen", "",
		"`address` to serve /livez, /healthz and /readyz on, too, without TLS: any, because the answers name no cluster")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "`file` with the certificate to serve with")
	flags.StringVar(&f.tlsKey, "tls-key", "", "`file` with its key")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"`file` with one token, whose user is an administrator; clients must send it, or the credentials of another user")
	f.authentication.add(flags)
	f.login.add(flags)
	flags.StringVar(&f.authorization, "authorization", string(access.ModeRBAC),
		"how requests of users that are not administrators are authorized: `mode` rbac (each cluster's own roles, which are "+
			"mirrored), review (the cluster is asked), rules (the roles of --access-file) or none (everyone may read "+
			"everything; only on this machine's own address)")
	flags.StringVar(&f.accessFile, "access-file", "",
		"`file` of YAML with roles for the daemon itself, and the modes and user names of single clusters")
	flags.StringSliceVar(&f.hosts, "allow-host", nil, "`name` under which clients may ask, besides this machine's own")
	flags.StringSliceVar(&f.include, "include", nil,
		"`pattern` of resources to mirror, such as pods, deployments.apps, *.example.com; * is every resource (default: "+
			"every resource but leases and the events of events.k8s.io)")
	flags.StringSliceVar(&f.exclude, "exclude", nil, "`pattern` of resources to leave out")
	flags.BoolVar(&f.secrets, "secrets", false, "mirror secrets too, without their data")
	flags.BoolVar(&f.secretData, "secret-data", false, "mirror secrets with their data")
	flags.StringArrayVar(&f.redact, "redact", nil,
		"`rule` for values that are replaced before an object is stored, such as configmaps:/data/*password* or "+
			"pods:/spec/containers/*/env/*/value, may be repeated")
	flags.StringVar(&f.stateFile, "state", "",
		"`file` that remembers clusters which joined at run time, with their credentials")
	flags.IntVar(&f.historyBytes, "history-bytes", 0,
		"`bytes` of recent changes to keep for each resource (default 8 MiB)")
	flags.DurationVar(&f.historyAge, "history-age", 0, "how long recent changes are kept (default 10m)")
	flags.Int64Var(&f.limits.Objects, "max-objects", 0,
		"`objects` to hold of one resource of a cluster; a resource with more is dropped and retried later (default "+
			"1000000)")
	flags.Int64Var(&f.limits.Bytes, "max-bytes", 0,
		"`bytes` of memory to hold of one resource of a cluster (default 1 GiB)")
	flags.Int64Var(&f.limits.ClusterObjects, "max-cluster-objects", 0,
		"`objects` to hold of one cluster (default 4000000)")
	flags.Int64Var(&f.limits.ClusterBytes, "max-cluster-bytes", 0,
		"`bytes` of memory to hold of one cluster (default 4 GiB)")
	flags.Int64Var(&f.limits.FleetBytes, "max-fleet-bytes", 0,
		"`bytes` of memory to hold of all clusters together; above it, the cluster that takes most loses its largest "+
			"resource (default: no limit)")
	flags.DurationVar(&f.startGrace, "start-grace", 30*time.Second,
		"how long /fleet is 503 at start for clusters that cannot be reached; then they are left out, with a warning")
	flags.DurationVar(&f.shutdownDelay, "shutdown-delay", 0,
		"how long requests are still answered after SIGTERM while /readyz fails, so that load balancers go elsewhere first")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.config, "config", "",
		"`file` of YAML with these flags; it is read again when it changes: log-level is used at once, others after a "+
			"restart")
	f.data.add(flags)
	addAuditFlags(flags, &f.audit)
	return cmd
}

// logger returns a logger for --log-format.
func (f *serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	if err := setLevel(&f.level, f.logLevel); err != nil {
		return nil, usageError{err}
	}
	o := &slog.HandlerOptions{Level: &f.level}
	switch f.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format is text or json, not %q", f.logFormat)}
}

// setLevel sets a level to the value of --log-level; "" is info.
func setLevel(level *slog.LevelVar, name string) error {
	switch name {
	case "debug", "warn", "error":
		return level.UnmarshalText([]byte(name))
	case "info", "":
		level.Set(slog.LevelInfo)
		return nil
	}
	return fmt.Errorf("--log-level is debug, info, warn or error, not %q", name)
}

var klogLogger sync.Once

// access returns the settings that restrict access. The Authenticator may be nil.
func (f *serveFlags) access(users *identity.Authenticator) (server.Access, error) {
	a := server.Access{Hosts: f.hosts}
	if users != nil {
		a.Authenticator = users
	}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return a, usageError{errors.New("--tls-cert and --tls-key go together; give both, or none to serve plain http on " +
			"this machine")}
	}
	if f.tokenFile != "" {
		token, err := readToken(f.tokenFile)
		if err != nil {
			return a, usageError{err}
		}
		a.Token = token
	}
	if err := a.CheckAddress(f.listen, f.tlsCert != ""); err != nil {
		return a, usageError{err}
	}
	if f.shutdownDelay < 0 {
		return a, usageError{fmt.Errorf("--shutdown-delay cannot be negative, and is %s", f.shutdownDelay)}
	}
	if host, _, err := net.SplitHostPort(f.listen); err == nil && f.authorization == string(access.ModeNone) &&
		!server.IsLoopback(host) {
		return a, usageError{fmt.Errorf("--authorization none is only for an address of this machine, such as "+
			"127.0.0.1:8090, not %q", f.listen)}
	}
	if f.authorization == string(access.ModeRules) && f.accessFile == "" {
		return a, usageError{errors.New("--authorization rules needs the file with the roles; name it with --access-file")}
	}
	if err := f.checkFiles(); err != nil {
		return a, usageError{err}
	}
	return a, nil
}

// use applies settings of the file of --config that have changed. It returns those that need a restart.
func (f *serveFlags) use(changed map[string]any) (later []string, err error) {
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		if key != "log-level" {
			later = append(later, key)
			continue
		}
		name, ok := changed[key].(string)
		if changed[key] != nil && !ok {
			return nil, errors.New("log-level is debug, info, warn or error")
		}
		if err := setLevel(&f.level, name); err != nil {
			return nil, err
		}
	}
	return later, nil
}

// rights returns what decides about the requests of users.
func (f *serveFlags) rights(fl *fleet.Fleet, log *slog.Logger) (*access.Access, error) {
	o := access.Options{Mode: access.Mode(f.authorization), Logger: log}
	if f.accessFile != "" {
		var err error
		if o.Config, err = readAccessFile(f.accessFile); err != nil {
			return nil, err
		}
	}
	rights, err := access.New(fl, o)
	if err != nil {
		return nil, fmt.Errorf("--authorization: %w", err)
	}
	return rights, nil
}

// serve runs the daemon until ctx ends.
func serve(ctx context.Context, f *serveFlags, out io.Writer) error {
	log, err := f.logger(os.Stderr)
	if err != nil {
		return err
	}
	// The OIDC authenticator and client-go log by klog, which cannot be given another logger once it is in use.
	klogLogger.Do(func() { klog.SetSlogLogger(log) })
	var fl *fleet.Fleet
	users, err := f.authentication.authenticator(f.tlsCert != "", func() *fleet.Fleet { return fl }, log)
	if err != nil {
		return usageError{err}
	}
	allowed, err := f.access(users)
	if err != nil {
		return err
	}
	logins, err := f.login.login(users, f.listen, f.hosts, f.tlsCert != "")
	if err != nil {
		return usageError{err}
	}
	data, err := f.data.open(log)
	if err != nil {
		return usageError{err}
	}
	if data != nil {
		defer func() {
			if err := data.Close(); err != nil {
				log.Error("the data folder was not closed as it should be; the next start repairs it", "error", err)
			}
		}()
	}
	fl, err = fleet.New(fleet.Options{Include: f.include, Exclude: f.exclude, Secrets: f.secrets || f.secretData,
		SecretData: f.secretData, Redact: f.redact, StateFile: f.stateFile,
		HistoryBytes: f.historyBytes, HistoryAge: f.historyAge, Limits: f.limits, Logger: log,
		Disk: data, DiskSecrets: f.data.keyFile != ""})
	if err != nil {
		return usageError{err}
	}
	followers, err := f.members(fl)
	if err != nil {
		return usageError{err}
	}
	found, err := f.home.members(fl, log)
	if err != nil {
		return usageError{err}
	}
	if err := f.authentication.checkCluster(fl); err != nil {
		return usageError{err}
	}
	events, err := openAudit(f.audit, log)
	if err != nil {
		return usageError{err}
	}
	metrics := prometheus.NewRegistry()
	rights, err := f.rights(fl, log)
	if err != nil {
		return usageError{err}
	}
	options := server.Options{Access: allowed, Authorizer: rights, Metrics: metricsHandler(metrics, fl),
		Page: web.Handler(), StartGrace: f.grace(), Logger: log}
	if logins != nil {
		options.Access.Authenticator, options.Login = logins, logins
	}
	if events != nil {
		options.Audit = events.Record
	}
	srv, err := server.New(fl, options)
	if err != nil {
		return err
	}
	if err := registerMetrics(metrics, fl, srv, events); err != nil {
		return err
	}
	d := &service{fleet: fl, data: data, server: srv, users: users, rights: rights, audit: events, followers: followers,
		log: log, shutdownDelay: f.shutdownDelay, found: found, startGrace: f.startGrace,
		files: &credentials{
			tokenFile: f.tokenFile, certFile: f.tlsCert, keyFile: f.tlsKey, accessFile: f.accessFile,
			config: f.file, setConfig: f.use, setAccess: rights.SetConfig, token: allowed.Token, setToken: srv.SetToken,
			log: log, wake: make(chan struct{}, 1)}}
	if err := d.files.load(); err != nil {
		return usageError{err}
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return listenError("--listen", f.listen, err)
	}
	say := announcement{address: listener.Addr(), hosts: f.hosts, tlsCert: f.tlsCert,
		tokenFile: f.tokenFile, users: f.authentication.credentials(), folder: f.folder}
	if f.probeListen != "" {
		if d.probes, err = net.Listen("tcp", f.probeListen); err != nil {
			listener.Close()
			return listenError("--probe-listen", f.probeListen, err)
		}
		say.probes = d.probes.Addr()
	}
	for _, c := range fl.Clusters() {
		say.clusters = append(say.clusters, c.Name())
	}
	say.write(out)
	return d.run(ctx, listener)
}

// grace converts --start-grace for the server, where 0 means the default.
func (f *serveFlags) grace() time.Duration {
	if f.startGrace == 0 {
		return -1
	}
	return f.startGrace
}

// members joins the initial clusters and returns the followers of their files.
func (f *serveFlags) members(fl *fleet.Fleet) (followers []*fleet.Follower, err error) {
	joined, err := f.home.join(fl, f.namesKubeconfig() || f.folder != "")
	if err != nil {
		return nil, err
	}
	if f.folder != "" {
		follower, err := fl.FollowFolder(f.folder)
		if err != nil {
			return nil, err
		}
		followers = append(followers, follower)
	}
	if f.namesKubeconfig() || f.folder == "" && !joined && !f.home.follows() {
		follower, err := f.followContexts(fl)
		if err != nil {
			return nil, err
		}
		if follower != nil {
			followers = append(followers, follower)
		}
	}
	return followers, nil
}

// namesKubeconfig reports whether flags name a kubeconfig or contexts of it.
func (f *serveFlags) namesKubeconfig() bool {
	return f.kubeconfig != "" || len(f.contexts) > 0 || f.allContexts
}

// followContexts joins contexts of the kubeconfig. The current context is determined once: a user that later switches
// to another one does so for kubectl and not for the daemon.
func (f *serveFlags) followContexts(fl *fleet.Fleet) (*fleet.Follower, error) {
	path := f.kubeconfig
	if path == "" {
		path = fleet.DefaultKubeconfig()
	}
	contexts := f.contexts
	if len(contexts) == 0 && !f.allContexts {
		cfg, err := fleet.LoadKubeconfig(path)
		switch {
		case err != nil && len(fl.Clusters()) > 0:
			return nil, nil // the clusters of the state file are enough
		case err != nil:
			return nil, fmt.Errorf("%w; name another with --kubeconfig, or a folder of them with --folder", err)
		case cfg.CurrentContext == "":
			return nil, fmt.Errorf("the kubeconfig %s has no current context; name one with --context, or take all with "+
				"--all-contexts", path)
		}
		contexts = []string{cfg.CurrentContext}
	}
	return fl.FollowKubeconfig(path, contexts...)
}
