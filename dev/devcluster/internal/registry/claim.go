package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Claim is a supervisor's exclusive use of a name. It lasts until Release or until the process ends.
type Claim struct {
	r    *Registry
	name string
	file *os.File
}

// probeTime is how long a name may appear to be taken only because another command is checking it.
const probeTime = 300 * time.Millisecond

func (r *Registry) lockPath(name string) string { return filepath.Join(r.dir, name+".lock") }

// Claim claims the name of e for this process, removes what a killed predecessor of that name left, and stores e as
// the cluster's description. The error is ErrRunning if the name is taken.
func (r *Registry) Claim(e Entry) (*Claim, error) {
	if err := CheckName(e.Name); err != nil {
		return nil, err
	}
	if err := r.CheckSockets(e.Name); err != nil {
		return nil, err
	}
	c, err := r.lock(e.Name)
	for deadline := time.Now().Add(probeTime); errors.Is(err, ErrRunning) && time.Now().Before(deadline); {
		time.Sleep(probeTime / 10)
		c, err = r.lock(e.Name)
	}
	if err != nil {
		return nil, err
	}
	if err := c.sweep(); err != nil {
		c.release()
		return nil, err
	}
	if err := c.Update(e); err != nil {
		c.Release()
		return nil, err
	}
	return c, nil
}

// lock takes the cluster's lock without waiting. The holder of a lock removes its file, so a lock counts only if its
// file is still the one at the path.
func (r *Registry) lock(name string) (*Claim, error) {
	for range 100 {
		if err := r.ensure(); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(r.lockPath(name), os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last cluster has removed the folder
		}
		if err != nil {
			return nil, fmt.Errorf("lock the name %q: %w", name, err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("cluster %q is %w: choose another --name or run `devcluster down %s`",
					name, ErrRunning, name)
			}
			return nil, fmt.Errorf("lock the name %q: %w", name, err)
		}
		mine, err1 := f.Stat()
		there, err2 := os.Stat(r.lockPath(name))
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return &Claim{r: r, name: name, file: f}, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("lock the name %q: %s keeps changing", name, r.lockPath(name))
}

// Update replaces the description of the cluster.
func (c *Claim) Update(e Entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("describe cluster %q: %w", c.name, err)
	}
	path := c.r.entryPath(c.name)
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("describe cluster %q: %w", c.name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("describe cluster %q: %w", c.name, err)
	}
	return nil
}

// Release releases the name and removes everything that the registry has for it. The data folder belongs to the
// caller.
func (c *Claim) Release() {
	for _, p := range []string{c.r.entryPath(c.name), c.r.entryPath(c.name) + ".new",
		c.r.ControlSocket(c.name), c.r.EtcdSocket(c.name), c.r.EtcdSocket(c.name) + ".lock"} {
		_ = os.Remove(p) // usually it does not exist
	}
	c.unlock()
}

// release is for a lock that turned out to be free: it removes what was left behind, ignoring errors, then unlocks.
func (c *Claim) release() {
	_ = c.sweep()
	c.Release()
}

// unlock removes the lock file while it is still locked, then closes it. It also removes the folder if this was the
// last cluster.
func (c *Claim) unlock() {
	_ = os.Remove(c.r.lockPath(c.name))
	_ = c.file.Close()
	_ = os.Remove(c.r.dir) // fails unless it is empty
}

// sweep removes the temporary data of a killed supervisor. Its children end with it, but may still write for a moment.
func (c *Claim) sweep() error {
	old, err := c.r.read(c.name)
	if err != nil || !old.Temporary || old.Data == "" {
		return nil
	}
	for range 50 {
		if err = os.RemoveAll(old.Data); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("remove what a killed cluster %q left in %s: %w", c.name, old.Data, err)
}
