package component

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdQuota is far above etcd's default of 2 GiB: 50,000 pods with a few
// minutes of uncompacted status updates need more than that.
const etcdQuota = 8 << 30

// runEtcd runs a single-member etcd that serves clients only on a unix socket. A single member needs no peer listener
// and has none, so etcd cannot be reached over the network.
func runEtcd(args []string) int {
	if err := etcd(args); err != nil {
		fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
		return 1
	}
	return 0
}

func etcd(args []string) error {
	flags := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	dir := flags.String("data-dir", "", "where etcd keeps its data")
	socket := flags.String("socket", "", "unix socket to serve clients on")
	noFsync := flags.Bool("unsafe-no-fsync", false, "do not wait for the disk; only for temporary data")
	if err := flags.Parse(args); err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	// A socket left by a killed process would make the bind fail. The supervisor holds the cluster's lock, so the socket
	// is not in use.
	if err := os.Remove(*socket); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove the old socket: %w", err)
	}

	cfg := embed.NewConfig()
	cfg.Name = "devcluster"
	cfg.Dir = *dir
	cfg.LogLevel = "warn"
	cfg.UnsafeNoFsync = *noFsync
	cfg.QuotaBackendBytes = etcdQuota
	// Left at zero, every request would be logged as a slow one.
	cfg.WarningUnaryRequestDuration = time.Second
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: *socket}}
	cfg.ListenPeerUrls = nil
	// The advertised addresses are only names: no other member will ever use them.
	nowhere := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	cfg.AdvertiseClientUrls = nowhere
	cfg.AdvertisePeerUrls = nowhere
	cfg.InitialCluster = cfg.Name + "=" + nowhere[0].String()

	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start on %s with data in %s: %w", *socket, *dir, err)
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case <-ctx.Done():
		return nil
	case err := <-e.Err():
		return fmt.Errorf("serve on %s: %w", *socket, err)
	case <-time.After(time.Minute):
		return fmt.Errorf("not ready one minute after its start")
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-e.Err():
		return fmt.Errorf("serve on %s: %w", *socket, err)
	case <-e.Server.StopNotify():
		return fmt.Errorf("stopped by itself")
	}
}
