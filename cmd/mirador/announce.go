package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// announced is how many clusters the start-up message names; a fleet may have hundreds.
const announced = 5

// announcement is the start-up message.
type announcement struct {
	address   net.Addr
	probes    net.Addr // nil if they have no address of their own
	hosts     []string
	tlsCert   string
	tokenFile string
	users     userCredentials
	folder    string
	clusters  []string
}

// userCredentials is the kind of credentials that a user of the daemon can give to a client such as kubectl.
type userCredentials int

const (
	noCredentials    userCredentials = iota // none are required, or only the token of --token-file
	tokenCredentials                        // tokens, and perhaps others
	certificateCredentials
	proxyCredentials // a front proxy authenticates users
)

// write prints the URL of the page and commands that work unchanged, or with the credentials of a user.
func (a *announcement) write(w io.Writer) {
	at := a.url()
	fmt.Fprintf(w, "the page:       %s/\n", at)
	if a.probes != nil {
		fmt.Fprintf(w, "probes:         http://%s/readyz\n", a.probes)
	}
	fmt.Fprintf(w, "all clusters:   %s\n", a.command(at+"/fleet"))
	for i, name := range a.clusters {
		if i == announced {
			fmt.Fprintf(w, "                and %d more: mirador clusters shows all\n", len(a.clusters)-announced)
			break
		}
		fmt.Fprintf(w, "one of them:    %s\n", a.command(at+"/clusters/"+name))
	}
	switch {
	case a.tokenFile != "":
	case a.users == tokenCredentials:
		fmt.Fprintln(w, "credentials:    these commands need the token of a user in the variable TOKEN")
	case a.users == certificateCredentials:
		fmt.Fprintln(w, "credentials:    these commands need the certificate and the key of a user in place of FILE")
	case a.users == proxyCredentials:
		fmt.Fprintln(w, "credentials:    users come through the front proxy; name its address in place of this one")
	}
	if a.tlsCert == "" && (a.tokenFile != "" || a.users != noCredentials) {
		fmt.Fprintln(w,
			"kubectl:        not here: it sends no token over plain http; serve with --tls-cert and --tls-key for it")
	}
	if len(a.clusters) == 0 && !hasFiles(a.folder) {
		fmt.Fprintln(w, a.howToJoin(at))
	}
}

// command returns a command that lists pods.
func (a *announcement) command(at string) string {
	token := ""
	switch {
	case a.tokenFile != "":
		token = fmt.Sprintf("$(cat %s)", quoted(a.tokenFile))
	case a.users == tokenCredentials:
		token = "$TOKEN"
	}
	if token != "" && a.tlsCert == "" {
		return fmt.Sprintf(`curl -H "Authorization: Bearer %s" %s/api/v1/pods`, token, at)
	}
	command := "kubectl --server " + at
	if a.tlsCert != "" {
		command += " --certificate-authority " + quoted(a.tlsCert)
	}
	switch {
	case token != "":
		command += fmt.Sprintf(` --token "%s"`, token)
	case a.users == certificateCredentials:
		command += " --client-certificate FILE --client-key FILE"
	}
	return command + " get pods -A"
}

// quoted quotes a file name for a shell.
func quoted(file string) string {
	if strings.ContainsAny(file, " \t\"'$`\\*?&;|<>()") {
		return "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	return file
}

// howToJoin describes how clusters join a daemon without any.
func (a *announcement) howToJoin(at string) string {
	join := "mirador clusters join NAME --kubeconfig FILE --server " + at
	if a.tokenFile != "" {
		join += " --token-file " + quoted(a.tokenFile)
	} else if a.users == tokenCredentials {
		join += " --token-file FILE"
	}
	if a.tlsCert != "" {
		join += " --certificate-authority " + quoted(a.tlsCert)
	}
	if a.folder == "" {
		return "no clusters yet: have one join with " + join
	}
	return fmt.Sprintf("no clusters yet: put a kubeconfig into %s and it joins within seconds, or run %s", a.folder, join)
}

// url returns a URL of the daemon for clients on this machine.
func (a *announcement) url() string { return pageURL(a.address, a.hosts, a.tlsCert != "") }

// pageURL returns the URL of a daemon that listens on an address. An address such as 0.0.0.0 is replaced by the first
// of the allowed host names.
func pageURL(listen net.Addr, hosts []string, withTLS bool) string {
	scheme, address := "http", listen.String()
	if withTLS {
		scheme = "https"
	}
	if tcp, ok := listen.(*net.TCPAddr); ok && (tcp.IP == nil || tcp.IP.IsUnspecified()) {
		host := "127.0.0.1"
		if len(hosts) > 0 {
			host = hosts[0]
		}
		address = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	return scheme + "://" + address
}

// hasFiles reports whether a folder has a file that may be a kubeconfig.
func hasFiles(folder string) bool {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			return true
		}
	}
	return false
}

// listenError describes why listening on the address of a flag failed.
func listenError(flag, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen on %s: another program listens there, perhaps another mirador serve; end it, or choose "+
			"another address with %s", address, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen on %s: this user may not listen there; choose a port above 1023 with %s", address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s: this machine does not have that address; choose one of its own with %s, "+
			"such as 127.0.0.1:8090", address, flag)
	}
	return fmt.Errorf("listen on %s: %w; choose another address with %s", address, err, flag)
}

// checkFiles checks the files that serve needs.
func (f *serveFlags) checkFiles() error {
	if f.tlsCert != "" {
		if _, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey); err != nil {
			return fmt.Errorf("read the certificate of --tls-cert and the key of --tls-key: %w; both are files of PEM",
				plainFileError(err))
		}
	}
	if f.folder == "" {
		return nil
	}
	info, err := os.Stat(f.folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--folder %s: there is no such folder; make it, and put a kubeconfig into it for each cluster",
			f.folder)
	case err == nil && !info.IsDir():
		return fmt.Errorf("--folder %s: it is a file, not a folder; name the folder it is in, or give it with --kubeconfig",
			f.folder)
	case err == nil:
		_, err = os.ReadDir(f.folder)
	}
	if err != nil {
		return fmt.Errorf("--folder %s: it cannot be read: %w", f.folder, errors.Unwrap(err))
	}
	return nil
}
