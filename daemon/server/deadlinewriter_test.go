package server

import (
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slowClient reads with a fixed number of bytes per second.
type slowClient struct {
	*httptest.ResponseRecorder
	perByte  time.Duration
	deadline time.Time
}

func (c *slowClient) SetWriteDeadline(at time.Time) error { c.deadline = at; return nil }

func (c *slowClient) Write(b []byte) (int, error) {
	time.Sleep(min(time.Duration(len(b))*c.perByte, time.Until(c.deadline)))
	if !time.Now().Before(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

func TestClientThatReadsTooSlowlyIsCutOff(t *testing.T) {
	for rate, want := range map[time.Duration]int{ // bytes per second, and how many of 100 pieces of 64 KiB it gets
		1 << 20:   100,
		100 << 10: 100,
		60 << 10:  100, // a few seconds late in total
		16 << 10:  10,
		4 << 10:   2,
		1:         0,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newDeadlineWriter(&slowClient{ResponseRecorder: httptest.NewRecorder(), perByte: time.Second / rate})
			begun, got := time.Now(), 0
			for range 100 {
				if _, err := p.Write(make([]byte, 64<<10)); err != nil {
					break
				}
				time.Sleep(time.Second) // encoding the next piece does not count
				got++
			}
			if got != want {
				t.Errorf("at %d bytes a second it gets %d pieces, want %d, in %v", rate, got, want, time.Since(begun))
			}
		})
	}
}
