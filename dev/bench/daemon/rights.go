package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mirador-k8s/mirador/dev/bench/measure"
	"github.com/mirador-k8s/mirador/dev/bench/rights"
)

// FilteredLists is how long lists at /fleet take that users with different rights are sent.
type FilteredLists struct {
	// P50 and Unfiltered are by shape.
	P50, Unfiltered map[rights.Shape]time.Duration
	// Ratio is the median of each list's time to that of an unfiltered list of the same size, sent just before it.
	Ratio map[rights.Shape]float64
}

// SamplesFor returns the samples that MeasureFiltered needs for a number of namespaces. A tenth of the pods is all pods
// of some namespaces, or some pods of all: see unfilteredPath.
func SamplesFor(namespaces int) []int { return []int{namespaces / 10, namespaces} }

// MeasureFiltered lists all pods at /fleet as n users of each shape, each user once. Before each list, an
// administrator lists as many pods of as many clusters, namespaces and templates, all that there are.
func (f *Fleet) MeasureFiltered(ctx context.Context, n int) (FilteredLists, error) {
	out := FilteredLists{P50: map[rights.Shape]time.Duration{}, Unfiltered: map[rights.Shape]time.Duration{},
		Ratio: map[rights.Shape]float64{}}
	if err := f.checkSizes(ctx); err != nil {
		return out, err
	}
	timed := func(token, path string) (time.Duration, error) {
		began := time.Now()
		_, err := f.readAs(ctx, token, path, "", false)
		return time.Since(began), err
	}
	took, unfiltered := map[rights.Shape][]time.Duration{}, map[rights.Shape][]time.Duration{}
	ratios := map[rights.Shape][]float64{}
	for i := range n {
		for _, u := range f.usersOfEachShape(i) {
			whole, err := timed(f.token, f.unfilteredPath(u.Shape, i))
			if err != nil {
				return out, err
			}
			part, err := timed(u.Token(), "/fleet/api/v1/pods")
			if err != nil {
				return out, err
			}
			unfiltered[u.Shape], took[u.Shape] = append(unfiltered[u.Shape], whole), append(took[u.Shape], part)
			ratios[u.Shape] = append(ratios[u.Shape], float64(part)/float64(whole))
		}
	}
	for shape := range took {
		out.P50[shape] = measure.Percentile(took[shape], 0.5)
		out.Unfiltered[shape] = measure.Percentile(unfiltered[shape], 0.5)
		slices.Sort(ratios[shape])
		out.Ratio[shape] = ratios[shape][len(ratios[shape])/2]
	}
	return out, nil
}

// unfilteredPath returns a path for a tenth of all pods at /fleet, without a filter, in stores like those that a user
// of a shape lists: one cluster with all of its pods, or a sample. Packed pods are differences to one of their
// namespace, so how long a list takes also depends on how many namespaces it has.
func (f *Fleet) unfilteredPath(shape rights.Shape, i int) string {
	const path = "/fleet/api/v1/pods?clusters="
	if shape == rights.Clusters {
		return path + simName(i%f.size.Clusters)
	}
	sample := 1
	if shape == rights.Objects {
		sample = 2
	}
	var names []string
	for n := range f.size.Clusters {
		names = append(names, simName(sample*f.size.Clusters+n))
	}
	return path + strings.Join(names, ",")
}

// usersOfEachShape returns the i-th user of each shape.
func (f *Fleet) usersOfEachShape(i int) (out []rights.User) {
	for _, shape := range rights.Shapes() {
		n := 0
		for _, u := range f.size.Users {
			if u.Shape == shape {
				if n == i {
					out = append(out, u)
				}
				n++
			}
		}
	}
	return out
}

// checkSizes returns an error if a list that is compared does not have a tenth of all pods. It also warms up.
func (f *Fleet) checkSizes(ctx context.Context) error {
	count := func(token, path string) error {
		body, err := f.openAs(ctx, token, path, "", false)
		if err != nil {
			return err
		}
		defer body.Close()
		var list struct{ Items []struct{} }
		if err := json.NewDecoder(body).Decode(&list); err != nil {
			return fmt.Errorf("read a list: %w", err)
		}
		if want := f.size.Pods / 10; len(list.Items) != want {
			return fmt.Errorf("a list of %s as %s has %d pods, want %d", path, token, len(list.Items), want)
		}
		return nil
	}
	for _, shape := range rights.Shapes() {
		if err := count(f.token, f.unfilteredPath(shape, 0)); err != nil {
			return err
		}
	}
	last := len(f.size.Users)/len(rights.Shapes()) - 1 // the others are used for the first time when they are measured
	for _, u := range f.usersOfEachShape(last) {
		if err := count(u.Token(), "/fleet/api/v1/pods"); err != nil {
			return err
		}
	}
	return nil
}

// Rates is how many requests per second were answered, for all users and for a single one.
type Rates struct{ All, One float64 }

// RateOfUsers sends requests for the first ten pods that a user may see, with as many clients at a time, in turns of
// this length: as all users one after the other, and as one user of each shape.
func (f *Fleet) RateOfUsers(ctx context.Context, clients, turns int, turn time.Duration) (Rates, error) {
	few := f.usersOfEachShape(0)
	var all, one []float64
	for range turns {
		for _, side := range []struct {
			users []rights.User
			rates *[]float64
		}{{f.size.Users, &all}, {few, &one}} {
			rate, err := f.rate(ctx, clients, turn, side.users)
			if err != nil {
				return Rates{}, err
			}
			*side.rates = append(*side.rates, rate)
		}
	}
	slices.Sort(all)
	slices.Sort(one)
	return Rates{all[len(all)/2], one[len(one)/2]}, nil
}

// rate sends requests as users in turn for a while, and returns how many were answered per second.
func (f *Fleet) rate(ctx context.Context, clients int, during time.Duration, users []rights.User) (float64, error) {
	var next, answered atomic.Int64
	errs := make(chan error, clients)
	var sending sync.WaitGroup
	began := time.Now()
	for range clients {
		sending.Go(func() {
			for time.Since(began) < during {
				u := &users[int(next.Add(1))%len(users)]
				if _, err := f.readAs(ctx, u.Token(), "/fleet/api/v1/pods?limit=10", "", false); err != nil {
					errs <- err
					return
				}
				answered.Add(1)
			}
		})
	}
	sending.Wait()
	took := time.Since(began)
	close(errs)
	return float64(answered.Load()) / took.Seconds(), <-errs
}
