package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The exit codes of the commands.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitUnreachable = 4
)

// exitHelp is part of the help of every command, followed by what holds for several clusters.
const (
	exitHelp = `

Exit codes: 0 all is well, 1 it failed, 2 the command was called wrongly, 3 a name that was asked
for is not there, 4 the daemon or the cluster cannot be reached.`
	exitHelpOfOthers = ` Of several clusters, one that was never
reached is left out: a warning names it, and the code is that of the others.`
	exitHelpOfStatus = ` It is also 4 if one of the clusters that
are shown is unreachable: what is printed is complete, and an error names it. --cluster asks about some only.`
)

// coded is an error with an exit code.
type coded struct {
	code int
	err  error
}

// Error returns the text of the error.
func (e *coded) Error() string { return e.err.Error() }

// Unwrap returns the wrapped error.
func (e *coded) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &coded{exitUsage, fmt.Errorf(format, args...)}
}

func notFound(err error) error    { return &coded{exitNotFound, err} }
func unreachable(err error) error { return &coded{exitUnreachable, err} }

// ExitCode returns the exit code of a command's error: 0 for nil, 2 for wrong usage, 3 for a name that does not
// exist, 4 for a daemon or cluster that cannot be reached, and 1 for any other error.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if c, ok := errors.AsType[*coded](err); ok {
		return c.code
	}
	return exitFailed
}

// ofCluster adds the exit code to an error of a request to a cluster.
func ofCluster(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*coded](err); ok {
		return err
	}
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return err // the cluster was reached
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return unreachable(fmt.Errorf("%w; is the cluster up, and the context the right one?", err))
	}
	return err
}

var errWantsToken = errors.New("the daemon wants a token, and this one is none or the wrong one; name its file " +
	"with --token-file")

// plainToTLS is in the answer of Go's server for HTTPS to a request without TLS.
const plainToTLS = "HTTP request to an HTTPS server"

// The errors for a URL with the wrong scheme.
var (
	errWantsHTTPS = unreachable(errors.New("the daemon serves https; write the server's URL with https://"))
	errWantsHTTP  = unreachable(errors.New("the daemon serves http without TLS; write the server's URL with http://"))
)

// ofDaemon adds the exit code to an error of a request to a daemon.
func ofDaemon(err error) error {
	if apierrors.IsUnauthorized(err) {
		return errWantsToken
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if strings.Contains(cause.Message, plainToTLS) {
				return errWantsHTTPS
			}
		}
	}
	if _, ok := errors.AsType[*url.Error](err); ok && !errors.Is(err, context.Canceled) {
		return unreachableDaemon(err)
	}
	return err
}

// unreachableDaemon returns the error of a request to a daemon that got no answer.
func unreachableDaemon(err error) error {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return errWantsHTTP
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return unreachable(fmt.Errorf("%w; name the file with the authority of the daemon's certificate with "+
			"--certificate-authority", err))
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return unreachable(fmt.Errorf("%w; name the daemon with --server as its certificate does", err))
	}
	if isCertificateError(err) {
		return unreachable(fmt.Errorf("%w; the daemon needs another certificate, or --certificate-authority names the "+
			"wrong authority", err))
	}
	return unreachable(fmt.Errorf("%w; is the daemon up? start one with mirador serve, or name it with --server", err))
}

// isCertificateError reports whether a daemon was reached, and its certificate was not accepted.
func isCertificateError(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// takes checks the number of arguments. most is -1 for an unlimited number.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usagef("%s takes %s, and got %d arguments; see %s --help", cmd.CommandPath(), what,
				len(args), cmd.CommandPath())
		}
		return nil
	}
}

// WrongFlag returns a readable error with the exit code for wrong usage for an error in the flags.
func WrongFlag(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s is %q; %s is expected; see %s --help", e.GetFlag().Name, e.GetValue(),
			Expected(e.GetFlag()), cmd.CommandPath())
	}
	return usagef("%w; see %s --help", err, cmd.CommandPath())
}

// Expected describes the values that a flag takes.
func Expected(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64":
		return "a whole number such as 1000000"
	case "duration":
		return "a duration such as 30s, 10m or 1h30m"
	case "stringSlice":
		return "a text or a list of texts"
	}
	return "a text"
}
