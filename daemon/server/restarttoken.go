package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/daemon/query"
	"github.com/mirador-k8s/mirador/object"
)

// A continue token names a list in memory. With a data folder it has a second part, with which another process reads
// the state of that list from disk. This part is sealed: a client can neither change it nor read the versions and the
// number of clusters in it.

// restartToken is the second part of a continue token.
type restartToken struct {
	next  query.Resume
	views [16]byte // stands for the clusters of the list and what is visible in each
	// marks are the states of the clusters in which something is visible, by the names of these: all with a time, or all
	// with a version.
	marks []fleet.Mark
}

const (
	// The first byte of a token says which marks it has.
	marksWithVersions, marksWithTimes = 1, 2
	// maxRestartToken bounds a token, so that it fits into a URL. A list of more clusters, about 100, ends with the process.
	maxRestartToken = 1024
	restartTokenSep = "~"
)

var errRestartToken = errors.New("the second part of the continue token is not valid")

func (t *restartToken) encode() []byte {
	kind := byte(marksWithVersions)
	if len(t.marks) > 0 && !t.marks[0].Time.IsZero() {
		kind = marksWithTimes
	}
	b := append([]byte{kind}, t.next.Request[:]...)
	b = append(b, t.views[:]...)
	begun := t.next.Begun.UnixMilli()
	b = binary.AppendVarint(b, begun)
	b = binary.AppendUvarint(b, uint64(t.next.Served))
	for _, m := range t.marks {
		if kind == marksWithTimes {
			b = binary.AppendVarint(b, m.Time.UnixNano())
			continue
		}
		version, err := strconv.ParseUint(string(m.Version), 10, 64)
		if err != nil {
			return nil
		}
		b = binary.AppendVarint(b, begun-m.Segment)
		b = binary.AppendUvarint(b, version)
	}
	return b
}

func decodeRestartToken(b []byte) (t restartToken, err error) {
	if len(b) < 1+len(t.next.Request)+len(t.views) || b[0] != marksWithVersions && b[0] != marksWithTimes {
		return t, errRestartToken
	}
	kind := b[0]
	b = b[1:]
	b = b[copy(t.next.Request[:], b):]
	b = b[copy(t.views[:], b):]
	bad := false
	signed := func() int64 {
		n, size := binary.Varint(b)
		if bad = bad || size <= 0; bad {
			return 0
		}
		b = b[size:]
		return n
	}
	unsigned := func() uint64 {
		n, size := binary.Uvarint(b)
		if bad = bad || size <= 0; bad {
			return 0
		}
		b = b[size:]
		return n
	}
	begun := signed()
	served := unsigned()
	bad = bad || served > 1<<40
	t.next.Begun, t.next.Served = time.UnixMilli(begun), int(served)
	for len(b) > 0 && !bad {
		if kind == marksWithTimes {
			t.marks = append(t.marks, fleet.Mark{Time: time.Unix(0, signed())})
			continue
		}
		segment := begun - signed()
		t.marks = append(t.marks, fleet.Mark{Segment: segment, Version: object.Version(strconv.FormatUint(unsigned(), 10))})
	}
	if bad {
		return t, errRestartToken
	}
	return t, nil
}

// restartSeal returns what seals tokens; nil without a data folder.
func (s *Server) restartSeal() cipher.AEAD {
	key := s.fleet.TokenKey()
	if key == nil {
		return nil
	}
	aead, err := sealOf(key)
	if err != nil {
		return nil // not reached: the key has the right size
	}
	return aead
}

func sealOf(key *fleet.TokenKey) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal returns a token with its second part, or without one if it would be too long.
func (t *restartToken) seal(aead cipher.AEAD, first string) string {
	b := t.encode()
	if len(b) == 0 || len(b) > maxRestartToken {
		return first
	}
	return first + restartTokenSep + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, b, []byte(first)))
}

// openRestartToken opens the second part of a token. It returns nil if there is none, or if it was not sealed here.
func openRestartToken(aead cipher.AEAD, first, second string) *restartToken {
	if aead == nil || second == "" || len(second) > 2*maxRestartToken {
		return nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(second)
	if err != nil {
		return nil
	}
	b, err := aead.Open(nil, nil, sealed, []byte(first))
	if err != nil {
		return nil
	}
	t, err := decodeRestartToken(b)
	if err != nil {
		return nil
	}
	return &t
}

// cutRestartToken returns the parts of a token. One without a first part has none.
func cutRestartToken(token string) (first, second string) {
	if first, second, _ = strings.Cut(token, restartTokenSep); first == "" {
		return token, ""
	}
	return first, second
}

// restartToken returns the second part of the tokens of a list that has begun; nil if it ends with the process. past is
// nil for a list of the present.
func (s *Server) restartToken(req *request, v *view, past *pastList, views []query.View[*fleet.Object]) *restartToken {
	if s.restartSeal() == nil {
		return nil
	}
	t := &restartToken{views: hashViews(views, req.namespace)}
	if past != nil {
		t.marks = past.marks
		return t
	}
	for i := range views {
		at := v.places[slices.IndexFunc(v.places, func(p place) bool { return p.cluster == views[i].Cluster })]
		if !at.shows(req.namespace) {
			continue
		}
		m, ok := at.res.Mark(views[i].Snapshot)
		if !ok {
			return nil
		}
		t.marks = append(t.marks, m)
	}
	return t
}

// hashViews returns a hash of the clusters in which something of a list is visible, and of what that is.
func hashViews(views []query.View[*fleet.Object], namespace string) (sum [16]byte) {
	h := sha256.New()
	for i := range views {
		v := &views[i]
		see := v.Visible
		if see != nil && see.EmptyIn(namespace) {
			continue
		}
		fmt.Fprintf(h, "%q ", v.Cluster)
		if see != nil {
			fmt.Fprintf(h, "%t ", see.All)
			if !see.All {
				fmt.Fprintf(h, "%q %q %q", see.Namespaces, see.Keys, see.Names)
			}
		}
		fmt.Fprint(h, "\n")
	}
	copy(sum[:], h.Sum(nil))
	return sum
}
