package server

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/mirador-k8s/mirador/daemon/fleet"
	"github.com/mirador-k8s/mirador/internal/jsonscan"
)

// sortByPrecedence sorts the rows of a table of FlowSchemas, cluster by cluster, by the order in which an API server
// tries them, as the API server's tables are sorted. Other lists stay in the order of names.
func (l *listing) sortByPrecedence() {
	if l.render.form != asTable || l.gvk.Group != "flowcontrol.apiserver.k8s.io" || l.gvk.Kind != "FlowSchema" {
		return
	}
	precedence := make(map[*fleet.Entry]int, len(l.items))
	for _, it := range l.items {
		precedence[it.entry] = matchingPrecedence(fleet.Bytes(it.entry, nil))
	}
	slices.SortStableFunc(l.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(precedence[a.entry], precedence[b.entry]),
			cmp.Compare(a.entry.Key, b.entry.Key))
	})
}

func matchingPrecedence(obj []byte) int {
	from, to, ok := jsonscan.Member(obj, "spec")
	if !ok {
		return 0
	}
	spec := obj[from:to]
	if from, to, ok = jsonscan.Member(spec, "matchingPrecedence"); !ok {
		return 0
	}
	n, err := strconv.Atoi(string(spec[from:to]))
	if err != nil {
		return 0
	}
	return n
}
