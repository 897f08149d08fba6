package fleet

import "net/url"

// ServerURL is the address of the cluster's own API server, without any credentials.
func (c *Cluster) ServerURL() string {
	base := c.link.ways.now.Load().base
	return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}).String()
}
