//go:build !race

package pack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testpods"
)

type budget struct {
	e               encoding
	templates, pods int
	packed, all     int64 // bytes per pod as measured
}

// full reports whether tests use their full numbers.
func full() bool { return os.Getenv("MIRADOR_NIGHTLY") != "" }

// The budgets are measured bytes per pod, and the test allows a tenth more. There are 1,000 pods, and up to 20,000 if
// MIRADOR_NIGHTLY is set.
func TestBytesPerPodStayWithinBudget(t *testing.T) {
	budgets := []budget{
		{protobuf, 20, 1000, 156, 443},
		{jsonText, 20, 1000, 116, 545},
	}
	if full() {
		budgets = append(budgets,
			budget{protobuf, 200, 20_000, 158, 245},
			budget{jsonText, 200, 20_000, 118, 204},
			budget{protobuf, 1000, 10_000, 148, 462})
	}
	for _, tc := range budgets {
		t.Run(fmt.Sprintf("%s of %d templates", tc.e, tc.templates), func(t *testing.T) {
			set, p := testpods.New(1, tc.templates), New()
			for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(tc.pods) {
				s := tc.e.sample(t, set.Pod(i))
				p.packed(s.enc, s.ctx)
			}
			s := p.Stats()
			n := int64(s.Objects)
			t.Logf("%d bytes per pod, %d of them packed data, from %d: %+v", s.Bytes()/n, s.PackedBytes/n, s.RawBytes/n, s)
			if s.PackedBytes/n > tc.packed*11/10 {
				t.Errorf("packed data takes %d bytes per pod, the budget is %d plus a tenth", s.PackedBytes/n, tc.packed)
			}
			if s.Bytes()/n > tc.all*11/10 {
				t.Errorf("all memory is %d bytes per pod, the budget is %d plus a tenth", s.Bytes()/n, tc.all)
			}
		})
	}
}

// Random order is the worst case: no two pods in a row have the same base. There are 500 templates and 1,500 pods, and
// 10,000 and 30,000 if MIRADOR_NIGHTLY is set.
func TestManyTemplatesInRandomOrderFindTheirBases(t *testing.T) {
	templates, pods := 500, 1500
	if full() {
		templates, pods = 10_000, 30_000
	}
	set, p := testpods.New(1, templates), New()
	order := rand.New(rand.NewPCG(2, 2)).Perm(pods)
	for _, i := range order {
		s := protobuf.sample(t, set.Pod(i))
		p.packed(s.enc, s.ctx)
	}
	s := p.Stats()
	if s.Bases > templates*5/4 {
		t.Errorf("%d bases for %d templates: siblings are not found", s.Bases, templates)
	}
	// The data of a pod that is itself a base takes a few bytes.
	if got := s.PackedBytes / int64(pods); got > 200 {
		t.Errorf("%d bytes per pod, want at most 200", got)
	}
	if got := s.BaseBytes / int64(s.Bases); got > 1500 {
		t.Errorf("%d bytes per base: templates are not packed against each other", got)
	}
	t.Logf("%d bytes per pod: %+v", s.Bytes()/int64(pods), s)
}

func TestDissimilarObjectsCostLittleMoreThanTheirBytes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	const objects = 6000
	p := New()
	for range objects {
		// Random letters that no two objects share, and that compress to about three quarters.
		enc := make([]byte, 1500)
		for i := range enc {
			enc[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)]
		}
		p.packed(enc, "")
	}
	s := p.Stats()
	if most := 1024 + objects/creditUnit + 1; s.Bases > most {
		t.Errorf("%d bases that no sibling uses, want at most %d", s.Bases, most)
	}
	if s.Bytes() > s.RawBytes {
		t.Errorf("objects of %d bytes take %d", s.RawBytes, s.Bytes())
	}
	t.Logf("%d of %d: %+v", s.Bytes()/objects, s.RawBytes/objects, s)
}

// Pods are first stored while they are pending. When they run, new bases must replace those of pending pods.
func TestBasesAreReplacedWhenSiblingsChange(t *testing.T) {
	const templates, pods = 10, 400
	set, p := testpods.New(1, templates), New()
	stored := make([]Packed, pods)
	for i := range stored {
		s := protobuf.sample(t, pending(set.Pod(i)))
		stored[i] = p.packed(s.enc, s.ctx)
	}
	bases := p.Stats().Bases
	late := 0
	for i := range stored {
		s := protobuf.sample(t, set.Pod(i))
		k := p.packed(s.enc, s.ctx)
		p.Release(stored[i])
		stored[i] = k
		if i >= pods/2 {
			late += k.size()
		}
	}
	s := p.Stats()
	if got := late / (pods / 2); got > 200 {
		t.Errorf("running pods take %d bytes each, want at most 200", got)
	}
	if s.Refreshed == 0 || s.Bases > 3*templates {
		t.Errorf("%d bases before, %d after, %d refreshed", bases, s.Bases, s.Refreshed)
	}
	for i, k := range stored {
		unpacksTo(t, k, protobuf.sample(t, set.Pod(i)))
	}
}

func TestPackAndAppendIntoALargeEnoughBufferDoNotAllocate(t *testing.T) {
	all := protobuf.samples(t, 5, 500)
	p := New()
	packed := make([]Packed, len(all))
	for i, s := range all {
		packed[i] = p.packed(s.enc, s.ctx)
	}
	buf := make([]byte, 0, 1<<16)
	for range 100 { // all bases are in the cache after this
		for i, s := range all[:20] {
			packed[i].Append(buf, s.ctx)
		}
	}
	i := 0
	if n := testing.AllocsPerRun(400, func() {
		s := all[i%len(all)]
		buf, _ = p.Pack(buf[:0], s.enc, s.ctx)
		i++
	}); n > 0 {
		t.Errorf("Pack into a large enough buffer makes %v allocations", n)
	}
	if n := testing.AllocsPerRun(400, func() {
		k, s := packed[i%len(all)], all[i%len(all)]
		buf, _ = k.Append(buf[:0], s.ctx)
		i++
	}); n > 0 {
		t.Errorf("Append into a large enough buffer makes %v allocations", n)
	}
}
