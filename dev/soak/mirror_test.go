package main

import (
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/reflector"
	"github.com/mirador-k8s/mirador/source"
)

func TestWatchesClosedForSilenceAreNotExplained(t *testing.T) {
	errors := map[source.Reason]uint64{source.Unavailable: 20, source.Expired: 1}
	for _, c := range []struct {
		health reflector.Health
		want   uint64
	}{
		{reflector.Health{}, 7},
		{reflector.Health{Errors: errors}, 28},
		{reflector.Health{Errors: errors, Silences: 20}, 8},
	} {
		if got := explained(c.health, 34*time.Minute); got != c.want {
			t.Errorf("%d watches are explained by %+v in 34 minutes, want %d", got, c.health, c.want)
		}
	}
}
