package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/identity"
)

// authenticationFlags are the flags that say how users authenticate, besides --token-file. Their names are those of
// kube-apiserver where it has them.
type authenticationFlags struct {
	options identity.Options
}

func (f *authenticationFlags) add(flags *pflag.FlagSet) {
	o, h := &f.options, &f.options.RequestHeader
	flags.StringVar(&o.ClientCAFile, "client-ca-file", "",
		"`file` with the authorities of client certificates; the common name is the user, the organizations are the groups")
	flags.StringVar(&o.TokenAuthFile, "token-auth-file", "",
		"`file` of CSV with tokens of users, a line each: token,user,uid,\"group1,group2\"")
	flags.StringVar(&o.AuthenticationConfig, "authentication-config", "",
		"`file` with an AuthenticationConfiguration, which names OIDC issuers, as kube-apiserver reads it")
	flags.StringVar(&o.TokenReview.Cluster, "authentication-token-review", "",
		"`cluster` to ask for the user of a token that is unknown otherwise; it is trusted to name any user")
	flags.StringSliceVar(&o.TokenReview.Audiences, "api-audiences", nil,
		"`audience` of tokens that --authentication-token-review accepts (default: that of the cluster's API server)")
	flags.StringVar(&h.ClientCAFile, "requestheader-client-ca-file", "",
		"`file` with the authorities of a front proxy's certificate; the proxy names the user in headers")
	flags.StringSliceVar(&h.AllowedNames, "requestheader-allowed-names", nil,
		"common `name` that the front proxy's certificate may have (default: any)")
	flags.StringSliceVar(&h.UsernameHeaders, "requestheader-username-headers", nil,
		"`header` with the user's name (default X-Remote-User)")
	flags.StringSliceVar(&h.UIDHeaders, "requestheader-uid-headers", nil,
		"`header` with the user's ID, such as X-Remote-Uid")
	flags.StringSliceVar(&h.GroupHeaders, "requestheader-group-headers", nil,
		"`header` with a group of the user, such as X-Remote-Group")
	flags.StringSliceVar(&h.ExtraHeaderPrefixes, "requestheader-extra-headers-prefix", nil,
		"`prefix` of headers with other values of the user, such as X-Remote-Extra-")
}

// authenticator returns what authenticates users, or nil if no flag asks for it. The fleet is called for when a token
// is reviewed.
func (f *authenticationFlags) authenticator(withTLS bool, fl func() *fleet.Fleet,
	log *slog.Logger) (*identity.Authenticator, error) {
	opts := f.options
	opts.Logger = log
	switch review := &opts.TokenReview; {
	case review.Cluster != "":
		name := review.Cluster
		review.Review = func(ctx context.Context, spec authenticationv1.TokenReviewSpec) (
			authenticationv1.TokenReviewStatus, error) {
			cluster, ok := fl().Cluster(name)
			if !ok {
				return authenticationv1.TokenReviewStatus{}, errors.New("the cluster has left")
			}
			if err := mayReviewTokens(cluster); err != nil { // it may have taken the name of one that has left
				return authenticationv1.TokenReviewStatus{}, err
			}
			return cluster.ReviewToken(ctx, spec)
		}
	case len(review.Audiences) > 0:
		return nil, errors.New("--api-audiences is for --authentication-token-review; give both or none")
	}
	if opts.UsesCertificates() && !withTLS {
		return nil, errors.New("--client-ca-file and --requestheader-client-ca-file need TLS; give a certificate to serve " +
			"with by --tls-cert and --tls-key")
	}
	a, err := identity.New(opts) // also checks the headers of a front proxy without an authority
	if err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	if !opts.Any() {
		return nil, nil
	}
	return a, nil
}

// mayReviewTokens returns an error if somebody else than the operator of the daemon can choose the address of a
// cluster: who may let clusters join must not decide who users are.
func mayReviewTokens(c *fleet.Cluster) error {
	if c.Origin().IsOperators() {
		return nil
	}
	return fmt.Errorf("the cluster %q is from origin %q and may not review tokens; name one of --kubeconfig, --folder "+
		"or --home", c.Name(), c.Origin().Kind)
}

// checkCluster returns an error if the cluster that reviews tokens is not a member, or may not review them.
func (f *authenticationFlags) checkCluster(fl *fleet.Fleet) error {
	const flag = "--authentication-token-review: "
	name := f.options.TokenReview.Cluster
	if name == "" {
		return nil
	}
	if c, ok := fl.Cluster(name); ok {
		if err := mayReviewTokens(c); err != nil {
			return fmt.Errorf(flag+"%w", err)
		}
		return nil
	}
	var names []string
	for _, c := range fl.Clusters() {
		names = append(names, c.Name())
	}
	return fmt.Errorf(flag+"there is no cluster %q; the clusters are: %s", name,
		strings.Join(names, ", "))
}

// credentials returns the kind of credentials that clients of users send. Tokens come first, because every client
// can send one.
func (f *authenticationFlags) credentials() userCredentials {
	switch o := &f.options; {
	case o.TokenAuthFile != "" || o.AuthenticationConfig != "" || o.TokenReview.Cluster != "":
		return tokenCredentials
	case o.ClientCAFile != "":
		return certificateCredentials
	case o.RequestHeader.ClientCAFile != "":
		return proxyCredentials
	}
	return noCredentials
}
