package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/mirador-k8s/mirador/daemon/audit"
)

// addAuditFlags adds the flags of the audit log, with the names and the meaning that they have in kube-apiserver.
func addAuditFlags(flags *pflag.FlagSet, o *audit.Options) {
	flags.StringVar(&o.Path, "audit-log-path", "",
		"`file` for the audit log, in the format of kube-apiserver; - is standard output (default: no audit log)")
	flags.IntVar(&o.MaxSize, "audit-log-maxsize", 100, "`megabytes` at which the file of the audit log is rotated")
	flags.IntVar(&o.MaxAge, "audit-log-maxage", 0, "`days` after which rotated files are removed; 0 is never")
	flags.IntVar(&o.MaxBackups, "audit-log-maxbackup", 10, "rotated `files` to keep; 0 is all")
}

// checkAuditFlags returns an error for flags that mean nothing without a path of the audit log.
func checkAuditFlags(flags *pflag.FlagSet) error {
	if flags.Lookup("audit-log-path").Value.String() != "" {
		return nil
	}
	for _, name := range []string{"audit-log-maxsize", "audit-log-maxage", "audit-log-maxbackup"} {
		if flags.Changed(name) {
			return fmt.Errorf("--%s is for an audit log, and there is none; name its file with --audit-log-path", name)
		}
	}
	return nil
}

// openAudit opens the audit log. Without a path it returns nil.
func openAudit(o audit.Options, log *slog.Logger) (*audit.Log, error) {
	if o.Path == "" {
		return nil, nil
	}
	o.Logger = log
	return audit.Open(o)
}
