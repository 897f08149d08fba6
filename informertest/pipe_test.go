package informertest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestPipeCarriesMoreThanItsBufferInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe()
		sent := bytes.Repeat([]byte("0123456789abcdef"), pipeBuffer/4)
		go func() {
			a.Write(sent)
			a.Close()
		}()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("read %d of %d bytes, %v", len(got), len(sent), err)
		}
	})
}

func TestPipeWriterWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPipe()
		var n int
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			n, err = a.Write(make([]byte, 2*pipeBuffer))
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("a write returned although nothing was read")
		default:
		}
		b.Close()
		<-done
		if n != pipeBuffer || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("wrote %d, %v", n, err)
		}
	})
}

func TestPipeDeadlinesEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newPipe()
		start := time.Now()
		a.SetDeadline(start.Add(time.Minute))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("read ended after %v: %v", time.Since(start), err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write after the deadline: %v", err)
		}
		a.SetDeadline(time.Time{})
		if _, err := a.Write([]byte("x")); err != nil {
			t.Errorf("write after the deadline was lifted: %v", err)
		}
		a.Close()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
	})
}

func TestStoppedPipeRefusesConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, stop := Pipe(NewServer())
		stop()
		client := http.Client{Transport: cfg.Transport}
		if _, err := client.Get(cfg.Host + "/version"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after stop: %v", err)
		}
	})
}
