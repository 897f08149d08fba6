package server

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/fleet"
	"github.com/mirador-k8s/mirador/server/table"
)

// scope gives the entries of a snapshot that a request is about, by key.
func scope(snap *fleet.Snapshot, t *target) ([]*fleet.Entry, error) {
	if t.namespace == "" {
		all, _ := snap.Page("", 0)
		return all, nil
	}
	index, err := snap.Index(fleet.NamespaceIndex)
	if err != nil {
		return nil, err
	}
	out := slices.AppendSeq(make([]*fleet.Entry, 0, index.Len(t.namespace)), index.Entries(t.namespace))
	slices.SortFunc(out, func(a, b *fleet.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}

// now is the time that ages are counted to.
func (s *Server) now() time.Time { return time.Now() }

// noPrinter prints a table of nothing.
var noPrinter table.Printer = table.For(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
