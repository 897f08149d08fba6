package server

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// What is not a token is an error, and what is one is encoded as it was.
func FuzzDecodeRestartToken(f *testing.F) {
	begun := time.UnixMilli(1_800_000_000_000)
	f.Add((&restartToken{next: query.Resume{Served: 500, Begun: begun}, marks: []fleet.Mark{{Version: "4711",
		Segment: begun.UnixMilli() - 7}, {Version: "18446744073709551615", Segment: -1}}}).encode())
	f.Add((&restartToken{next: query.Resume{Begun: begun}, marks: []fleet.Mark{{Time: begun}, {Time: time.Unix(0, 1)}}}).
		encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		token, err := decodeRestartToken(b)
		if err != nil {
			return
		}
		again, err := decodeRestartToken(token.encode())
		if err != nil || again.next != token.next || again.views != token.views || !slices.Equal(again.marks, token.marks) ||
			!bytes.Equal(again.encode(), token.encode()) || token.next.Served < 0 {
			t.Fatalf("%+v became %+v, %v", token, again, err)
		}
	})
}

func TestATokenOfManyClustersHasNoSecondPart(t *testing.T) {
	key := new(fleet.TokenKey)
	aead, err := sealOf(key)
	if err != nil {
		t.Fatal(err)
	}
	token := &restartToken{next: query.Resume{Served: 1_000_000, Begun: time.Now()}}
	long := false
	for n := range 1000 {
		token.marks = append(token.marks, fleet.Mark{Segment: time.Now().Add(-time.Hour).UnixMilli(),
			Version: object.Version(fmt.Sprint(5_000_000_000 + n))})
		sealed := token.seal(aead, "first")
		if len(sealed) > 1500 {
			t.Fatalf("a token of %d clusters has %d bytes", n+1, len(sealed))
		}
		if long = long || sealed == "first"; long != (sealed == "first") || long && n < 80 {
			t.Fatalf("the token of %d clusters is %s", n+1, sealed)
		}
		if !long {
			_, second := cutRestartToken(sealed)
			if got := openRestartToken(aead, "first", second); got == nil || !slices.Equal(got.marks, token.marks) {
				t.Fatalf("%d clusters: %+v", n+1, got)
			}
			if strings.Contains(second, "=") || openRestartToken(aead, "second", second) != nil {
				t.Fatal("the token is also one of another first part, or padded")
			}
		}
	}
}
