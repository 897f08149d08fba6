package identity

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAChangedFileIsUsedWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		path := write(t, "tokens.csv", "first-secret,alice,1\n")
		a, err := New(Options{TokenAuthFile: path, Logger: log.logger()})
		check(t, err)
		run(t, a)
		wantUser(t, a, bearer("first-secret"), `alice "1" [system:authenticated]`)

		check(t, os.WriteFile(path, []byte("second-secret,alice,1\n"), 0o600))
		time.Sleep(filesEvery)
		synctest.Wait()
		wantUser(t, a, bearer("second-secret"), `alice "1" [system:authenticated]`)
		wantRefused(t, a, bearer("first-secret"), "invalid bearer token")

		check(t, os.WriteFile(path, []byte("third-secret,alice\n"), 0o600))
		a.Reload()
		synctest.Wait()
		time.Sleep(10 * filesEvery)
		synctest.Wait()
		wantUser(t, a, bearer("second-secret"), `alice "1" [system:authenticated]`)
		if n := strings.Count(log.String(), "cannot be used; what was read before stays in use"); n != 1 {
			t.Errorf("an unusable file was logged %d times; want once:\n%s", n, log.String())
		}

		check(t, os.Remove(path))
		a.Reload()
		synctest.Wait()
		wantUser(t, a, bearer("second-secret"), `alice "1" [system:authenticated]`)
		if strings.Contains(log.String(), "-secret") {
			t.Errorf("the log has a token:\n%s", log.String())
		}

		check(t, os.WriteFile(path, []byte("fourth-secret,alice,1\n"), 0o600))
		a.Reload()
		synctest.Wait()
		wantUser(t, a, bearer("fourth-secret"), `alice "1" [system:authenticated]`)
	})
}
