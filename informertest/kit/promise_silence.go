package kit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/informertest"
	"github.com/mirador-k8s/mirador/object"
)

// nothingSilent is P12: every problem is reported, and none empties or freezes the store.
func nothingSilent() []promise {
	return []promise{
		{"P12_UndecodableObjectInAWatchIsReported", func(k *kit) {
			k.create("a")
			s := k.subject()
			k.startSynced(s)
			k.expectProblem(s, func() {
				k.reopen(informertest.Fault{Verbs: []string{"watch"}, Undecodable: 1, Times: 1})
				k.update("a")
				k.create("b")
				k.has(s, "b")
				if _, ok := s.Get(keyOf("a")); !ok {
					k.errorf("a pod whose new state could not be decoded is gone")
				}
			})
		}},
		{"P12_UndecodableObjectInAListIsReported", func(k *kit) {
			k.create("a", "b", "c")
			k.server.Inject(informertest.Fault{RefuseInitialEvents: true})
			k.server.Inject(informertest.Fault{Verbs: []string{"list"}, Undecodable: 2})
			s := k.subject()
			k.expectProblem(s, func() {
				k.start(s)
				k.has(s, "a", "c")
				k.create("d")
				k.has(s, "d")
			})
		}},
		{"P12_StreamErrorIsReported", func(k *kit) {
			k.create("a")
			s := k.subject()
			k.startSynced(s)
			k.expectProblem(s, func() {
				k.reopen(informertest.Fault{Verbs: []string{"watch"}, GarbageFrame: 1, Times: 1})
				k.update("a")
				k.create("b")
				k.converges(s, 10*time.Minute)
			})
		}},
		{"P12_FailingTransformIsReportedAndEmptiesNothing", func(k *kit) {
			k.setup.Transform = func(p *corev1.Pod) (*corev1.Pod, error) {
				if p.Name == "b" {
					return nil, errors.New("this one cannot be transformed")
				}
				return p, nil
			}
			k.create("a", "b", "c")
			s := k.subject()
			k.expectProblem(s, func() {
				k.start(s)
				k.has(s, "a", "c")
				k.create("d")
				k.has(s, "a", "c", "d")
			})
		}},
	}
}

// expectProblem checks that a problem is reported and counted while do runs.
func (k *kit) expectProblem(s Subject, do func()) {
	reported, counted := k.problemCount(), s.Health().Problems
	do()
	if k.problemCount() == reported {
		k.errorf("no problem was reported")
	}
	if s.Health().Problems == counted {
		k.errorf("no problem was counted in the health")
	}
}

// has waits until the store holds the current state of some pods.
func (k *kit) has(s Subject, names ...string) {
	k.eventually(10*time.Minute, fmt.Sprintf("the store has the current state of %v", names), func() bool {
		have, want := s.Versions(), k.server.Versions(pods)
		for _, n := range names {
			if v, ok := have[keyOf(n)]; !ok || v.Before(want[keyOf(n)]) {
				return false
			}
		}
		return true
	})
}

// transforms is P13: a transform runs once for each version of an object.
func transforms() []promise {
	counted := func(k *kit) (calls func(key string) int) {
		var mu sync.Mutex
		n := map[string]int{}
		k.setup.Transform = func(p *corev1.Pod) (*corev1.Pod, error) {
			mu.Lock()
			defer mu.Unlock()
			n[p.Name+" "+p.ResourceVersion]++
			p.Annotations = map[string]string{"transformed": "yes"}
			return p, nil
		}
		return func(key string) int {
			mu.Lock()
			defer mu.Unlock()
			return n[key]
		}
	}
	check := func(k *kit, s Subject, calls func(string) int) {
		for key, v := range k.server.Versions(pods) {
			if n := calls(key.Name() + " " + string(v)); n != 1 {
				k.errorf("%s at %s was transformed %d times", key, v, n)
			}
			if p, ok := s.Get(key); !ok || p.Annotations["transformed"] != "yes" {
				k.errorf("%s is not stored transformed", key)
			}
		}
	}
	return []promise{
		{"P13_TransformRunsOncePerVersion", func(k *kit) {
			calls := counted(k)
			k.createMany(10)
			s := k.subject()
			k.startSynced(s)
			check(k, s, calls)
			k.update("pod-0001")
			k.create("later")
			k.converges(s, time.Minute)
			check(k, s, calls)
		}},
		{"P13_RelistTransformsNothingThatIsUnchanged", func(k *kit) {
			calls := counted(k)
			k.createMany(10)
			s := k.subject()
			k.startSynced(s)
			k.unseen(func() { k.update("pod-0001") })
			k.converges(s, 10*time.Minute)
			check(k, s, calls)
		}},
	}
}

// staleness is P14: state, version and last-event age can be read at any time.
func staleness() []promise {
	return []promise{
		{"P14_StateIsReadableAtAnyTime", func(k *kit) {
			state := func(s Subject, want string) {
				k.eventually(5*time.Minute, "the state is "+want, func() bool { return s.Health().State == want })
			}
			k.create("a")
			remove := k.server.Inject(informertest.Fault{Delay: time.Minute, Times: 1})
			s := k.subject()
			r := k.start(s)
			time.Sleep(time.Second)
			state(s, "listing")
			remove()
			state(s, "streaming")
			remove = k.server.Inject(informertest.Fault{Code: 500})
			k.server.CutWatches()
			state(s, "retrying")
			remove()
			state(s, "streaming")
			if err := k.server.Unregister(pods); err != nil {
				k.fatalf("%v", err)
			}
			state(s, "not served")
			r.cancel()
			<-r.done
			state(s, "stopped")
		}},
		{"P14_VersionAndLastEventAgeAreReadable", func(k *kit) {
			k.create("a")
			s := k.subject()
			k.startSynced(s)
			version := func(want object.Version) {
				k.eventually(time.Minute, "the version is "+string(want), func() bool { return s.Health().Version == want })
			}
			version(k.server.Version())
			time.Sleep(time.Minute)
			updated := time.Now()
			k.update("a")
			version(k.server.Version())
			if at := s.Health().LastEvent; at.Before(updated) {
				k.errorf("LastEvent is %v, but the server last sent something at %v", at, updated)
			}
			k.server.Stall()
			time.Sleep(20 * time.Second)
			if age := time.Since(s.Health().LastEvent); age < 19*time.Second || age > 22*time.Second {
				k.errorf("after 20s of silence LastEvent is %v ago", age)
			}
		}},
	}
}
