package structures

import (
	"fmt"
	"testing"
)

func TestEveryCandidateReadsWhatWasWritten(t *testing.T) {
	const n = 3000
	for _, candidate := range Candidates {
		t.Run(candidate.Name, func(t *testing.T) {
			c := candidate.New()
			all := objects(n)
			want := map[string]*Object{}
			write := func(batch []*Object) {
				c.Update(batch)
				for _, o := range batch {
					want[o.Key] = o
				}
			}
			for i := 0; i < n; i += 100 {
				write(all[i : i+100])
			}
			changed := updates(all, 2000)
			for i, o := range changed[:1000] {
				write(changed[i : i+1])
				if got := c.Get(o.Key); got != o {
					t.Fatalf("Get(%s) is %v after writing %v", o.Key, got, o)
				}
			}
			write(changed[1000:])

			got := map[string]*Object{}
			c.All(func(o *Object) { got[o.Key] = o })
			if err := same(got, want); err != nil {
				t.Errorf("everything: %v", err)
			}
			for i := range namespaces {
				ns := fmt.Sprintf("ns-%d", i)
				got, inside := map[string]*Object{}, map[string]*Object{}
				c.InNamespace(ns, func(o *Object) { got[o.Key] = o })
				for k, o := range want {
					if o.Namespace == ns {
						inside[k] = o
					}
				}
				if err := same(got, inside); err != nil {
					t.Errorf("%s: %v", ns, err)
				}
			}
			if o := c.Get("no/such"); o != nil {
				t.Errorf("a key that was never written gives %v", o)
			}
		})
	}
}

func same(got, want map[string]*Object) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d objects, want %d", len(got), len(want))
	}
	for k, o := range want {
		if got[k] != o {
			return fmt.Errorf("%s is %v, want %v", k, got[k], o)
		}
	}
	return nil
}

func TestTheTrieKeepsEarlierStates(t *testing.T) {
	var n *node[int]
	for i := range 1000 {
		n = n.set(1, fmt.Sprint(i), i)
	}
	before := n
	for i := range 1000 {
		if i%2 == 0 {
			n = n.remove(2, fmt.Sprint(i))
		} else {
			n = n.set(2, fmt.Sprint(i), -i)
		}
	}
	for i := range 1000 {
		if v, ok := before.get(fmt.Sprint(i)); !ok || v != i {
			t.Fatalf("the earlier state has %d, %v for %d", v, ok, i)
		}
		v, ok := n.get(fmt.Sprint(i))
		if i%2 == 0 && ok || i%2 == 1 && v != -i {
			t.Fatalf("the later state has %d, %v for %d", v, ok, i)
		}
	}
}
