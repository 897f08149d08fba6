package reflector_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mirador-k8s/mirador/reflector"
)

// A source that sends some bookmarks close together and then none for minutes seems dead
// by the interval of the first ones. That may close one healthy stream, not more.
func TestP11_TooShortBookmarkIntervalCostsOneStream(t *testing.T) {
	for name, beats := range map[string]int{"two bookmarks a stream": 2, "ten bookmarks a stream": 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{lists: []reply{{version: "10", end: io.EOF}}}
				r, err := reflector.New(reflector.Options[string]{Source: &pulsing{script: s, every: time.Second, beats: beats},
					Sink: &collector{}})
				if err != nil {
					t.Fatal(err)
				}
				runFor(t, r, 24*time.Hour)
				if h := r.Health(); h.Silences != 1 || h.Watches > 1+24*12+1 {
					t.Errorf("%d watches in a day, %d closed because of silence; want 1, and all others open for 5 minutes",
						h.Watches, h.Silences)
				}
			})
		})
	}
}

// A source that stops sending bookmarks is treated like one that never sends any.
func TestP11_EndOfBookmarksCostsOneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lists: []reply{{version: "10", end: io.EOF}}}
		p := &pulsing{script: s, every: time.Minute, beats: 100}
		r, err := reflector.New(reflector.Options[string]{Source: p, Sink: &collector{}})
		if err != nil {
			t.Fatal(err)
		}
		runFor(t, r, time.Hour)
		if h := r.Health(); h.Silences != 0 {
			t.Fatalf("%d watches were closed because of silence although bookmarks arrived every minute", h.Silences)
		}
		p.beats = 0
		runFor(t, r, 24*time.Hour)
		if h := r.Health(); h.Silences != 1 {
			t.Errorf("%d watches were closed because of silence, want 1", h.Silences)
		}
	})
}
