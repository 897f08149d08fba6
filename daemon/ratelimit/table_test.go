package ratelimit

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestATableLimitsEachClient(t *testing.T) {
	table, now := NewTable(2, 5), time.Now()
	take := func(client string, want int) {
		t.Helper()
		n := 0
		for range 10 {
			if table.Take(client, now) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s may send %d requests, want %d", client, n, want)
		}
	}
	take("a", 5)
	take("b", 5)
	table.GiveBack("a")
	take("a", 1)
	now = now.Add(time.Second)
	take("a", 2)
	now = now.Add(time.Minute)
	table.GiveBack("b")
	take("b", 5)
}

func TestATableHasABoundedSize(t *testing.T) {
	table, now := NewTable(1, 1), time.Now()
	for i := range 3 * maxRates {
		if !table.Take(strconv.Itoa(i), now) {
			t.Fatalf("the first request of client %d is refused", i)
		}
	}
	if len(table.byKey) != maxRates || table.recent.Len() != maxRates {
		t.Errorf("the table has %d clients", len(table.byKey))
	}
	if table.Take(strconv.Itoa(3*maxRates-1), now) {
		t.Error("the table does not have the last client")
	}
}

func TestAHostHasOneAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:1": "10.0.0.1", "[::ffff:10.0.0.1]:2": "10.0.0.1", "[2001:db8::1]:1": "2001:db8::/64",
		"[2001:db8::ffff:1%eth0]:3": "2001:db8::/64", "[::1]:1": "::1", "@": "@", "": "",
	} {
		if got := Address(&http.Request{RemoteAddr: remote}); got != want {
			t.Errorf("%s is of %s, want %s", remote, got, want)
		}
	}
}
