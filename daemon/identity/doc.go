// Package identity determines which user sends a request.
package identity

import (
	// The authenticators of kube-apiserver.
	_ "k8s.io/apiserver/pkg/apis/apiserver/install"
	_ "k8s.io/apiserver/pkg/apis/apiserver/validation"
	_ "k8s.io/apiserver/pkg/authentication/group"
	_ "k8s.io/apiserver/pkg/authentication/request/bearertoken"
	_ "k8s.io/apiserver/pkg/authentication/request/headerrequest"
	_ "k8s.io/apiserver/pkg/authentication/request/union"
	_ "k8s.io/apiserver/pkg/authentication/request/websocket"
	_ "k8s.io/apiserver/pkg/authentication/request/x509"
	_ "k8s.io/apiserver/pkg/authentication/token/cache"
	_ "k8s.io/apiserver/pkg/authentication/token/union"
	_ "k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)
