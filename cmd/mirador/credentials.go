package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/daemon/access"
)

// credentialsEvery is how often the files of the token and the certificate are read.
const credentialsEvery = 5 * time.Second

// credentials follows the files of the token, the certificate, the access rights and the flags, so that they can be
// replaced while the daemon runs. They are opened by their names each time, because a Kubernetes Secret is replaced by
// changing a symbolic link. An unusable file is logged once, without its content, and the last good credentials stay
// in use.
type credentials struct {
	tokenFile, certFile, keyFile string
	setToken                     func(string) error
	accessFile                   string
	setAccess                    func(*access.Config) error
	config                       *configFile // nil if there is none
	setConfig                    func(changed map[string]any) (later []string, err error)
	log                          *slog.Logger

	wake        chan struct{}
	token       string
	cert        atomic.Pointer[tls.Certificate]
	pair        []byte            // the contents of the files of cert
	rights      []byte            // the content of accessFile
	lastFailure map[string]string // by file
}

// readToken reads a token from a file.
func readToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the token of --token-file: %w", plainFileError(err))
	}
	token := strings.TrimSpace(string(b))
	// A space or a comma is in no token, but in a file of another kind.
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' || c == ',' }) {
		return "", fmt.Errorf("the file %s of --token-file must have one token on one line, of visible ASCII characters "+
			"without commas; --token-auth-file is for the tokens of several users", path)
	}
	if len(token) < 16 {
		return "", fmt.Errorf("the token in %s is shorter than 16 characters; make one with: head -c 32 /dev/urandom | "+
			"base64", path)
	}
	return token, nil
}

// load reads the certificate for the first time.
func (c *credentials) load() error {
	if c.certFile == "" {
		return nil
	}
	return c.readPair()
}

func (c *credentials) readPair() error {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("read the key of the certificate: %w", err)
	}
	both := bytes.Join([][]byte{cert, key}, []byte{0})
	if bytes.Equal(both, c.pair) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("use the certificate of %s with the key of %s: %w", c.certFile, c.keyFile, err)
	}
	if c.pair != nil {
		c.log.Info("the certificate was replaced", "file", c.certFile)
	}
	c.cert.Store(&pair)
	c.pair = both
	return nil
}

// certificate returns the current certificate, for each TLS handshake.
func (c *credentials) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := c.cert.Load(); cert != nil {
		return cert, nil
	}
	return nil, errors.New("there is no certificate")
}

// check reads the files.
func (c *credentials) check() {
	if c.tokenFile != "" {
		token, err := readToken(c.tokenFile)
		if err == nil && token != c.token {
			if err = c.setToken(token); err == nil {
				c.token = token
				c.log.Info("the token was replaced", "file", c.tokenFile)
			}
		}
		c.report("token", err)
	}
	if c.certFile != "" {
		c.report("certificate", c.readPair())
	}
	if c.accessFile != "" {
		c.report("access file", c.readAccess())
	}
	if c.config != nil {
		c.report("config file", c.readConfig())
	}
}

// readConfig reads the file of --config again, and uses what has changed.
func (c *credentials) readConfig() error {
	changed, err := c.config.changes()
	if err != nil || len(changed) == 0 {
		return err
	}
	later, err := c.setConfig(changed)
	if err == nil && len(later) > 0 {
		c.log.Warn("the config file has changed; some of it is used only after a restart", "file", c.config.path, "settings",
			strings.Join(later, ", "))
	}
	return err
}

// readAccess reads the access file again, and uses it if it has changed.
func (c *credentials) readAccess() error {
	b, err := os.ReadFile(c.accessFile)
	if err != nil {
		return fmt.Errorf("read the file of --access-file: %w", plainFileError(err))
	}
	if bytes.Equal(b, c.rights) {
		return nil
	}
	config, err := parseAccessFile(c.accessFile, b)
	if err != nil {
		return err
	}
	if err := c.setAccess(config); err != nil {
		return err
	}
	if c.rights != nil {
		c.log.Info("the access file was replaced", "file", c.accessFile)
	}
	c.rights = b
	return nil
}

// readAccessFile reads the access file for the first time.
func readAccessFile(path string) (*access.Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of --access-file: %w", plainFileError(err))
	}
	return parseAccessFile(path, b)
}

func parseAccessFile(path string, b []byte) (*access.Config, error) {
	c, err := access.ParseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("the access file %s: %w", path, err)
	}
	return c, nil
}

// report logs an error unless it is the same as the last one.
func (c *credentials) report(what string, err error) {
	if err == nil {
		delete(c.lastFailure, what)
		return
	}
	if c.lastFailure[what] == err.Error() {
		return
	}
	if c.lastFailure == nil {
		c.lastFailure = map[string]string{}
	}
	c.lastFailure[what] = err.Error()
	c.log.Error("a file cannot be used; the last good "+what+" stays", "error", err)
}

// reload makes follow read the files now.
func (c *credentials) reload() {
	select {
	case c.wake <- struct{}{}:
	default: // already requested
	}
}

// follow reads the files periodically until ctx ends.
func (c *credentials) follow(ctx context.Context) error {
	tick := time.NewTicker(credentialsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.check()
		case <-c.wake:
			c.check()
		case <-ctx.Done():
			return nil
		}
	}
}
