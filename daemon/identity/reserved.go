package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// reservedPrefix begins the names of users and groups that only the daemon itself gives.
const reservedPrefix = "mirador:"

// checkReserved returns an error for a user that only the daemon itself could name, and for one that counts as not
// authenticated.
func checkReserved(u user.Info) error {
	name := u.GetName()
	switch {
	case name == "":
		return errors.New("the user is refused: the credential has no user name")
	case strings.HasPrefix(name, reservedPrefix):
		return fmt.Errorf("the user %q is refused: names that begin with %q are reserved for the daemon", name,
			reservedPrefix)
	case name == user.Anonymous:
		return fmt.Errorf("the user is refused: the name %q is that of requests without a credential", name)
	}
	for _, group := range u.GetGroups() {
		if strings.HasPrefix(group, reservedPrefix) {
			return fmt.Errorf("the user %q is refused: it is in the group %q, and groups that begin with %q are reserved for "+
				"the daemon", name, group, reservedPrefix)
		}
		if group == user.AllUnauthenticated {
			return fmt.Errorf("the user %q is refused: the group %q is that of requests without a credential", name, group)
		}
	}
	return nil
}

func refuseReserved(resp *authenticator.Response, ok bool, err error) (*authenticator.Response, bool, error) {
	if err != nil || !ok {
		return nil, false, err
	}
	if err := checkReserved(resp.User); err != nil {
		return nil, false, err
	}
	return resp, true, nil
}

func refuseReservedRequest(auth authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		return refuseReserved(auth.AuthenticateRequest(r))
	})
}

func refuseReservedToken(auth authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		return refuseReserved(auth.AuthenticateToken(ctx, token))
	})
}
