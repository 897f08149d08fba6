package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mirador-k8s/mirador/daemon/disk"
)

// progressAfter is how long a verification may take without showing its progress on a terminal.
const progressAfter = 2 * time.Second

func newDataVerify() *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Read all of a data folder, and name what is damaged",
		Long: `Read all of a data folder: the checksums of all files, and every stored object. What is damaged is named, and the
exit code is 1 then. Objects that are encrypted are decrypted only with --data-key; without it, the checksums of
their files are compared all the same.`,
		Example: `  mirador data verify /var/lib/mirador
  mirador data verify /var/lib/mirador --data-key key`,
		Args: takesArguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var key []byte
			if keyFile != "" {
				var err error
				if key, err = readDataKey(keyFile); err != nil {
					return usageError{err}
				}
			}
			return withData(cmd, args[0], key, func(ctx context.Context, d *disk.Disk) error {
				if err := d.CheckKey(); err != nil {
					return fmt.Errorf("--data-key: %w", err)
				}
				return verifyData(ctx, d, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "data-key", "", "`file` with the key of encrypted objects, as for mirador serve")
	return cmd
}

// verifyData reads all of a data folder. Damage is an error.
func verifyData(ctx context.Context, d *disk.Disk, dir string, out, progress io.Writer) error {
	shown := showProgress(progress)
	damages, err := d.Verify(ctx, shown.update)
	shown.end()
	for _, damage := range damages {
		why, _, _ := strings.Cut(damage.Err.Error(), "\n")
		fmt.Fprintf(out, "%s is damaged: %s\n", damage.What, why)
	}
	switch {
	case err != nil:
		return err
	case len(damages) > 0:
		return fmt.Errorf("the data folder %s is damaged in the places above (%d); %s", dir, len(damages), damageAdvice)
	}
	fmt.Fprintf(out, "%s is not damaged\n", dir)
	return nil
}

// damageAdvice says what to do about damage.
const damageAdvice = "move the folder away and let the daemon make a new one, which has everything but the history again"

// adviseDamage adds what to do to an error that says that the folder is damaged.
func adviseDamage(err error) error {
	if _, ok := errors.AsType[*disk.DamageError](err); ok {
		return fmt.Errorf("%w; %s", err, damageAdvice)
	}
	return err
}

// progress shows on a terminal how much was read.
type progress struct {
	done, total atomic.Int64
	stop, ended chan struct{}
}

// showProgress begins to show the progress after a while, if w is a terminal.
func showProgress(w io.Writer) *progress {
	p := &progress{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		if !isTerminal(w) {
			return
		}
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tick.Reset(progressAfter / 10)
				fmt.Fprint(w, "\r\x1b[K"+p.text())
			case <-p.stop:
				fmt.Fprint(w, "\r\x1b[K")
				return
			}
		}
	}()
	return p
}

// text describes the progress: the files are read first, and then the objects in them.
func (p *progress) text() string {
	done, total := p.done.Load(), p.total.Load()
	if done < total || total == 0 {
		return fmt.Sprintf("read %s of %s", bytesText(done), bytesText(total))
	}
	return fmt.Sprintf("read all files, %s; decoding every object", bytesText(total))
}

func (p *progress) update(done, total int64) {
	p.total.Store(total)
	p.done.Store(done)
}

func (p *progress) end() {
	close(p.stop)
	<-p.ended
}

// isTerminal reports whether the output is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
