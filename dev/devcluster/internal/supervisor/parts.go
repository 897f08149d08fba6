package supervisor

import (
	"fmt"
	"net"

	"github.com/mirador-k8s/mirador/dev/devcluster/internal/part"
	"github.com/mirador-k8s/mirador/dev/devcluster/internal/pki"
)

// The address ranges inside a cluster. They are only names in objects: nothing
// is ever sent to them.
const serviceRange = "172.20.0.0/16"

var serviceIP = net.IPv4(172, 20, 0, 1) // of the kubernetes service, the first of the range

// flags returns the command line of one part.
func (c *Cluster) flags(name part.Name) []string {
	switch name {
	case part.Etcd:
		return c.etcdFlags()
	case part.APIServer:
		return c.apiServerFlags()
	case part.ControllerManager:
		return c.controllerManagerFlags()
	case part.Scheduler:
		return c.schedulerFlags()
	case part.KWOK:
		return []string{"--kubeconfig=" + c.data.kubeconfig()}
	}
	panic(fmt.Sprintf("supervisor: no flags for part %q", name))
}

func (c *Cluster) etcdFlags() []string {
	flags := []string{"--data-dir=" + c.data.etcd(), "--socket=" + c.etcdSocket}
	if c.entry.Temporary {
		flags = append(flags, "--unsafe-no-fsync")
	}
	return flags
}

func (c *Cluster) apiServerFlags() []string {
	p := c.data.pki()
	flags := []string{
		"--etcd-servers=unix://" + c.etcdSocket,
		"--bind-address=127.0.0.1",
		// The endpoints of the kubernetes service must not be loopback addresses, and nothing in this cluster could use
		// them, so none are published.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", c.state.Port),
		"--cert-dir=" + string(p),
		"--tls-cert-file=" + p.Cert(pki.Serving),
		"--tls-private-key-file=" + p.Key(pki.Serving),
		"--client-ca-file=" + p.Bundle(),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.ServiceAccountPub(),
		"--service-account-signing-key-file=" + p.ServiceAccountKey(),
		// A development server must never answer "too many requests".
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--audit-policy-file=" + c.data.auditPolicy(),
		"--audit-log-path=" + c.data.auditLog(),
		"--audit-log-maxsize=100",
		"--audit-log-maxbackup=4",
	}
	if !c.entry.Controllers {
		// Without controllers nothing creates the service accounts that this plugin requires.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	return flags
}

func (c *Cluster) controllerManagerFlags() []string {
	p := c.data.pki()
	return append(c.commonFlags(pki.ControllerManager),
		"--root-ca-file="+p.Bundle(),
		"--service-account-private-key-file="+p.ServiceAccountKey(),
		"--use-service-account-credentials=true",
		"--cluster-signing-cert-file="+p.CA(),
		"--cluster-signing-key-file="+p.CAKey(),
		"--allocate-node-cidrs=false",
	)
}

func (c *Cluster) schedulerFlags() []string {
	return c.commonFlags(pki.Scheduler)
}

// commonFlags returns the flags of the Kubernetes components that are clients: no leader election, no rate limit, no
// listener.
func (c *Cluster) commonFlags(user string) []string {
	return []string{
		"--kubeconfig=" + c.data.internal(user),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
	}
}

// writeKubeconfigs writes the kubeconfigs of the administrator and the components, for the API server's current
// address.
func (c *Cluster) writeKubeconfigs() error {
	p := c.data.pki()
	context := "devcluster-" + c.entry.Name
	for path, user := range map[string]string{
		c.data.kubeconfig():                    pki.Admin,
		c.data.internal(pki.ControllerManager): pki.ControllerManager,
		c.data.internal(pki.Scheduler):         pki.Scheduler,
	} {
		if err := p.WriteKubeconfig(path, context, user, c.url()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) url() string { return fmt.Sprintf("https://127.0.0.1:%d", c.state.Port) }
