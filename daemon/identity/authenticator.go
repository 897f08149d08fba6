package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
)

// filesEvery is how often the files are read.
const filesEvery = 5 * time.Second

// Authenticator determines which user sends a request. Its methods may be called concurrently.
type Authenticator struct {
	log   *slog.Logger
	chain authenticator.Request
	wake  chan struct{}
	ran   atomic.Bool

	staticTokens atomic.Pointer[tokenTable]

	clientCA, proxyCA atomic.Pointer[authority]
	acceptedCAs       atomic.Pointer[x509.CertPool] // those of both
	anyProxyName      bool                          // the front proxy's certificate may have any common name

	issuers atomic.Pointer[issuerSet]
	dial    dialFunc // connects to issuers; nil means over the network

	// What follows is used by New, and then only by the goroutine of Run.
	files   []*file
	running bool
}

// New returns an Authenticator for the options. It reads their files, and returns an error if one cannot be used.
// Tokens of OIDC issuers are accepted once Run has started and the issuer has been reached.
func New(opts Options) (*Authenticator, error) { return newAuthenticator(opts, nil) }

func newAuthenticator(opts Options, dial dialFunc) (*Authenticator, error) {
	a := &Authenticator{log: opts.Logger, wake: make(chan struct{}, 1), dial: dial}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if err := opts.RequestHeader.complete(); err != nil {
		return nil, err
	}
	a.anyProxyName = len(opts.RequestHeader.AllowedNames) == 0
	a.staticTokens.Store(&tokenTable{})
	a.issuers.Store(&issuerSet{})
	a.follow("static tokens", opts.TokenAuthFile, a.useStaticTokens)
	a.follow("client authorities", opts.ClientCAFile, a.useClientCA)
	a.follow("front proxy's authorities", opts.RequestHeader.ClientCAFile, a.useProxyCA)
	a.follow("authentication configuration", opts.AuthenticationConfig, a.useConfiguration)
	for _, f := range a.files {
		if _, err := f.read(context.Background()); err != nil {
			return nil, err
		}
	}
	a.chain = a.newChain(&opts)
	return a, nil
}

// newChain connects the authenticators in the order of kube-apiserver.
func (a *Authenticator) newChain(opts *Options) authenticator.Request {
	var requests []authenticator.Request
	if h := &opts.RequestHeader; h.ClientCAFile != "" {
		requests = append(requests, refuseReservedRequest(headerrequest.NewDynamicVerifyOptionsSecure(
			verifyOptions(&a.proxyCA), headerrequest.StaticStringSlice(h.AllowedNames),
			headerrequest.StaticStringSlice(h.UsernameHeaders), headerrequest.StaticStringSlice(h.UIDHeaders),
			headerrequest.StaticStringSlice(h.GroupHeaders), headerrequest.StaticStringSlice(h.ExtraHeaderPrefixes))))
	}
	if opts.ClientCAFile != "" {
		requests = append(requests, refuseReservedRequest(
			x509request.NewDynamic(verifyOptions(&a.clientCA), x509request.CommonNameUserConversion)))
	}
	var tokens []authenticator.Token
	if opts.TokenAuthFile != "" {
		tokens = append(tokens, authenticator.TokenFunc(
			func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
				return a.staticTokens.Load().AuthenticateToken(ctx, token)
			}))
	}
	if opts.AuthenticationConfig != "" || opts.TokenReview.Review != nil {
		tokens = append(tokens, refuseReservedToken(a.remoteTokens(newReviewer(opts.TokenReview))))
	}
	if len(tokens) > 0 {
		all := tokenunion.New(tokens...)
		byToken := []authenticator.Request{bearertoken.New(all), websocket.NewProtocolAuthenticator(all)}
		if opts.TokenReview.Review != nil {
			byToken = []authenticator.Request{withAddress(byToken[0]), withAddress(byToken[1])}
		}
		requests = append(requests, byToken...)
	}
	return group.NewAuthenticatedGroupAdder(union.New(requests...))
}

// remoteTokens authenticates a token with the issuer that made it if that is configured, and with review if not. The
// latter may be nil.
func (a *Authenticator) remoteTokens(review authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		if made := a.issuers.Load().of(token); made != nil {
			return made.AuthenticateToken(ctx, token)
		}
		if review != nil {
			return review.AuthenticateToken(ctx, token)
		}
		return nil, false, nil
	})
}

// Authenticate returns the user that sends a request. It returns false if the request has no valid credential; the
// error then says why, and is nil if the request has no credential at all. The credential of an authenticated request
// is removed from its headers, so that nothing can log it or pass it on; Authenticate must be called once for each
// request. The error has a method Temporary that returns true if a credential could not be checked, because its issuer
// or cluster did not answer, so that it may be valid.
func (a *Authenticator) Authenticate(r *http.Request) (user.Info, bool, error) {
	resp, ok, err := a.chain.AuthenticateRequest(r)
	if errors.Is(err, errUnchecked) {
		return nil, false, temporaryError{err}
	}
	if err != nil || !ok {
		return nil, false, err
	}
	return resp.User, true, nil
}

// errUnchecked is in the chain of an error that says why a credential could not be checked.
var errUnchecked = errors.New("the credential could not be checked")

// temporaryError is the error of a credential that could not be checked.
type temporaryError struct{ error }

// Temporary reports that the credential may be valid.
func (temporaryError) Temporary() bool { return true }

// Unwrap returns the error that says why.
func (e temporaryError) Unwrap() error { return e.error }

// Run reads the files when they change and keeps in contact with the issuers until ctx ends. It may be called once.
func (a *Authenticator) Run(ctx context.Context) error {
	if !a.ran.CompareAndSwap(false, true) {
		return errors.New("the authenticator already runs or has ended; make another one with New")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the issuers
	a.running = true
	started, err := a.issuers.Load().start(ctx, a.dial)
	if err != nil {
		return err
	}
	a.issuers.Store(started)
	started.await(ctx)
	tick := time.NewTicker(filesEvery)
	defer tick.Stop()
	for {
		a.issuers.Load().report(a.log)
		select {
		case <-tick.C:
		case <-a.wake:
		case <-ctx.Done():
			return nil
		}
		for _, f := range a.files {
			f.check(ctx, a.log)
		}
	}
}

// Reload makes Run read the files now.
func (a *Authenticator) Reload() {
	select {
	case a.wake <- struct{}{}:
	default: // already requested
	}
}
