package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
)

// configurationCodecs decodes AuthenticationConfigurations and refuses unknown fields.
var configurationCodecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
})

// celCompiler is shared, because its environment is expensive to make.
var celCompiler = sync.OnceValue(cel.NewDefaultCompiler)

// useConfiguration takes over the issuers of an AuthenticationConfiguration. An issuer whose configuration is the same
// as before continues without interruption.
func (a *Authenticator) useConfiguration(ctx context.Context, content []byte) error {
	config, err := parseConfiguration(content)
	if err != nil {
		return err
	}
	for _, jwt := range config.JWT {
		if jwt.Issuer.EgressSelectorType != "" {
			a.log.Warn("the egress selector of an issuer is ignored: the daemon connects directly",
				"issuer", jwt.Issuer.URL, "egressSelectorType", jwt.Issuer.EgressSelectorType)
		}
	}
	old := a.issuers.Load()
	next := old.next(config.JWT)
	if a.running {
		if next, err = next.start(ctx, a.dial); err != nil {
			return err
		}
		next.await(ctx)
	}
	a.issuers.Store(next)
	old.stopExcept(next)
	return nil
}

// parseConfiguration decodes and validates an AuthenticationConfiguration as kube-apiserver does.
func parseConfiguration(content []byte) (*apiserver.AuthenticationConfiguration, error) {
	const kinds = "begin it with apiVersion: apiserver.config.k8s.io/v1 and kind: AuthenticationConfiguration"
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New("it is empty; " + kinds)
	}
	decoded, err := runtime.Decode(configurationCodecs().UniversalDecoder(), content)
	switch {
	case runtime.IsMissingKind(err) || runtime.IsMissingVersion(err):
		return nil, errors.New("apiVersion or kind is missing; " + kinds) // the original error quotes the file
	case runtime.IsNotRegisteredError(err):
		return nil, fmt.Errorf("%s; %s", strings.SplitN(err.Error(), " in scheme", 2)[0], kinds)
	case err != nil:
		return nil, err
	}
	config, ok := decoded.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is of another kind, %s; %s", decoded.GetObjectKind().GroupVersionKind().Kind, kinds)
	}
	if err := validation.ValidateAuthenticationConfiguration(celCompiler(), config, nil).ToAggregate(); err != nil {
		return nil, err
	}
	return config, nil
}
