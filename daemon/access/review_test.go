package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// standIn answers reviews in place of a cluster.
type standIn struct {
	*reviews
	t *testing.T

	mu      sync.Mutex
	allowed map[string]bool // by question
	asked   map[string]int  // by question
	now     int             // requests in progress
	most    int             // the largest number of requests in progress
	fails   error
	slow    time.Duration
	names   []string
	signals int
}

// question describes a review in a line.
func question(s *authorizationv1.SubjectAccessReviewSpec) string {
	if a := s.ResourceAttributes; a != nil {
		return fmt.Sprintf("%s %s %s/%s", s.User, a.Verb, a.Namespace, a.Resource)
	}
	return fmt.Sprintf("%s %s %s", s.User, s.NonResourceAttributes.Verb, s.NonResourceAttributes.Path)
}

// withStandIn runs a test in fake time. The bubble does not end before every goroutine has.
func withStandIn(t *testing.T, test func(t *testing.T, c *standIn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &standIn{t: t, allowed: map[string]bool{}, asked: map[string]int{}}
		c.reviews = &reviews{cluster: "eu", review: c.answer,
			namespaces: func() ([]string, error) { c.mu.Lock(); defer c.mu.Unlock(); return slices.Clone(c.names), nil },
			signal:     func() { c.mu.Lock(); defer c.mu.Unlock(); c.signals++ }}
		c.start()
		defer c.close()
		test(t, c)
	})
}

func (c *standIn) answer(ctx context.Context,
	spec authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus, err error) {
	c.mu.Lock()
	q := question(&spec)
	c.asked[q]++
	c.now++
	c.most = max(c.most, c.now)
	status.Allowed, err = c.allowed[q], c.fails
	slow := c.slow
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return status, ctx.Err()
		}
	}
	return status, err
}

// set changes what is allowed.
func (c *standIn) set(question string, allowed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed[question] = allowed
}

// requests returns how often a question was asked, or all questions with "".
func (c *standIn) requests(question string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if question != "" {
		return c.asked[question]
	}
	for n2 := range maps.Values(c.asked) {
		n += n2
	}
	return n
}

func listPods(namespace string) Attributes {
	return Attributes{ResourceRequest: true, Verb: "list", Resource: "pods", Namespace: namespace}
}

func TestReviewsAreCachedForSeconds(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.set("ann list web/pods", true)
		ask := func(who string, allowed bool, requests int) {
			t.Helper()
			d, err := c.decide(t.Context(), named(who), listPods("web"))
			if got := c.requests(who + " list web/pods"); err != nil || d.Allowed != allowed || got != requests {
				t.Fatalf("%s: %v %v after %d requests, want %v after %d", who, d, err, got, allowed, requests)
			}
		}
		ask("ann", true, 1)
		ask("bob", false, 1)
		pass(refusedFor - 1)
		ask("bob", false, 1)
		pass(1)
		c.set("bob list web/pods", true)
		ask("bob", true, 2)
		c.set("ann list web/pods", false)
		pass(allowedFor - refusedFor - 1)
		ask("ann", true, 1)
		pass(1)
		ask("ann", false, 2)
		// Another group is another user.
		if _, err := c.decide(t.Context(), named("ann", "x"), listPods("web")); err != nil ||
			c.requests("ann list web/pods") != 3 {
			t.Errorf("%v, %d requests", err, c.requests("ann list web/pods"))
		}
	})
}

func TestTheSameQuestionIsAskedOnceAtATime(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.slow = time.Second
		c.set("ann list web/pods", true)
		first, cancel := context.WithCancel(t.Context())
		go c.decide(first, named("ann"), listPods("web")) // its client goes away
		synctest.Wait()
		cancel()
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() {
				if d, err := c.decide(t.Context(), named("ann"), listPods("web")); !d.Allowed || err != nil {
					t.Error(d, err)
				}
			})
		}
		wait.Wait()
		if n := c.requests(""); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAClusterThatDoesNotAnswerRefusesAndIsAskedAgainAfterASecond(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.fails = errors.New("the connection was refused")
		c.set("ann list web/pods", true)
		for range 3 {
			d, err := c.decide(t.Context(), named("ann"), listPods("web"))
			if d.Allowed || err == nil || !strings.Contains(d.Reason, "not known: the connection was refused") {
				t.Fatal(d, err)
			}
		}
		if n := c.requests(""); n != 1 {
			t.Errorf("%d requests", n)
		}
		c.fails = nil
		pass(failedFor)
		if d, err := c.decide(t.Context(), named("ann"), listPods("web")); !d.Allowed || err != nil {
			t.Error(d, err)
		}
	})
}

func TestAFloodOfOneUserLeavesReviewsForOthers(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.slow = time.Second
		c.set("bob list web/pods", true)
		var flood sync.WaitGroup
		refused := 0
		var mu sync.Mutex
		for i := range 1000 {
			flood.Go(func() {
				if _, err := c.decide(t.Context(), named("ann"), listPods(fmt.Sprint(i))); err != nil {
					mu.Lock()
					defer mu.Unlock()
					refused++
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if d, err := c.decide(t.Context(), named("bob"), listPods("web")); !d.Allowed || err != nil || time.Since(began) !=
			time.Second {
			t.Error(d, err, time.Since(began))
		}
		flood.Wait()
		// The others were refused at once or waited too long.
		if answered := 1000 - refused; answered > int(decideTimeout/time.Second)*reviewsOfUserAtOnce || answered == 0 {
			t.Errorf("%d questions of the flood were answered", answered)
		}
		if c.most > reviewsOfUserAtOnce+1 {
			t.Errorf("%d requests at once", c.most)
		}
	})
}

func TestRequestsToAClusterAreBounded(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.slow = time.Second
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if _, err := c.decide(t.Context(), named(fmt.Sprint(i)), listPods("web")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if c.most != reviewsAtOnce {
			t.Errorf("%d requests at once", c.most)
		}
	})
}

func TestAnswersThatAreKeptAreBounded(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		long := Attributes{Verb: "get", Path: strings.Repeat("x", maxQuestion)}
		if _, err := c.decide(t.Context(), named("ann"), long); err == nil || c.requests("") != 0 {
			t.Errorf("a long question: %v, %d requests", err, c.requests(""))
		}
		decide := func(user string, i int) {
			if _, err := c.decide(t.Context(), named(user), listPods(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		decide("bob", 0)
		for i := range maxAnswersOfUser + 10 {
			decide("ann", i)
		}
		decide("bob", 0)
		if n := c.requests("bob list 0/pods"); n != 1 {
			t.Errorf("the flood of another user made bob's answer go away: %d requests", n)
		}
		ann := c.answers.users[reviewKey(named("ann"))]
		if len(ann.decisions) > maxAnswersOfUser || ann.size != userSize+len(ann.decisions) {
			t.Errorf("%d answers of size %d", len(ann.decisions), ann.size)
		}
		c.mu.Lock()
		c.asked = map[string]int{}
		c.mu.Unlock()
		for i := range maxAnswers / userSize {
			decide(fmt.Sprint("user", i), 0)
		}
		size := 0
		for _, of := range c.answers.users {
			size += of.size
		}
		if size != c.answers.size || size > maxAnswers {
			t.Errorf("the size is %d, counted %d", size, c.answers.size)
		}
	})
}

var pods = schema.GroupResource{Resource: "pods"}

func TestASetIsAskedAtClusterScopeAndThenByNamespace(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.names = []string{"web", "shop", "db"}
		c.set("all list /pods", true)
		c.set("ann list web/pods", true)
		c.set("ann list db/pods", true)
		for _, x := range []struct {
			user       string
			namespaced bool
			want       string
			requests   int
		}{
			{"all", true, "all", 1},
			{"ann", true, "db web", 4},
			{"ann", false, "", 1},
			{"carl", true, "", 4},
		} {
			before := c.requests("")
			set, err := c.visible(t.Context(), named(x.user), "list", pods, x.namespaced)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(set.Namespaces, " ")
			if set.All {
				got = "all"
			}
			if n := c.requests("") - before; got != x.want || n != x.requests {
				t.Errorf("%s: %s after %d requests", x.user, got, n)
			}
			if same, _ := c.visible(t.Context(), named(x.user), "list", pods, x.namespaced); same != set {
				t.Errorf("%s: another pointer", x.user)
			}
		}
		first, _ := c.visible(t.Context(), named("ann"), "list", pods, true)
		pass(allowedFor)
		before := c.requests("")
		// Namespaces that were refused are not asked for again so soon.
		if again, err := c.visible(t.Context(), named("ann"), "list", pods, true); again != first || err != nil ||
			c.requests("")-before != 3 {
			t.Errorf("%v: %d requests", err, c.requests("")-before)
		}
		pass(allowedFor)
		c.set("ann list web/pods", false)
		if set, err := c.visible(t.Context(), named("ann"), "list", pods, true); err != nil ||
			!slices.Equal(set.Namespaces, []string{"db"}) {
			t.Errorf("%v %v", set, err)
		}
		pass(allowedFor)
		c.set("ann list shop/pods", true)
		if set, err := c.visible(t.Context(), named("ann"), "list", pods, true); err != nil ||
			!slices.Equal(set.Namespaces, []string{"db", "shop"}) {
			t.Errorf("after half a minute: %v %v", set, err)
		}
	})
}

func TestAClusterWithTooManyNamespacesIsAnError(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		for i := range maxReviewedNamespaces {
			c.names = append(c.names, fmt.Sprint(i))
		}
		if _, err := c.visible(t.Context(), named("ann"), "list", pods, true); err != nil {
			t.Fatal(err)
		}
		if c.most > reviewsOfUserAtOnce {
			t.Errorf("%d requests at once", c.most)
		}
		c.names = append(c.names, "more")
		set, err := c.visible(t.Context(), named("bob"), "list", pods, true)
		if set != nil || err == nil || !strings.Contains(err.Error(), "name the namespace") {
			t.Error(set, err)
		}
	})
}

// watchOf asks for what an open watch needs.
func (c *standIn) watchOf(name string) (ok bool, set any) {
	d, err := c.decide(c.t.Context(), named(name), Attributes{ResourceRequest: true, Verb: "watch", Resource: "pods",
		Namespace: "web"})
	see, err2 := c.visible(c.t.Context(), named(name), "watch", pods, true)
	return d.Allowed && err == nil && err2 == nil, see
}

func TestQuestionsOfWatchesAreRepeatedWhileTheyAreOpen(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.names = []string{"web", "shop"}
		c.set("ann watch web/pods", true)
		ok, first := c.watchOf("ann")
		if !ok {
			t.Fatal("refused")
		}
		version := c.version()
		for range 20 { // the watch is open
			pass(repeatEvery)
			synctest.Wait()
			if c.version() == version {
				t.Fatal("the watch is not made to ask again")
			}
			version = c.version()
			before := c.requests("")
			if ok, set := c.watchOf("ann"); !ok || set != first || c.requests("") != before {
				t.Fatalf("%v, same set: %v, %d requests", ok, set == first, c.requests("")-before)
			}
		}
		c.set("ann watch web/pods", false)
		pass(repeatEvery)
		synctest.Wait()
		if ok, set := c.watchOf("ann"); ok || set == first {
			t.Error("the right is still there")
		}
		// No watch is open any more.
		pass((unaskedRepeats + 1) * repeatEvery)
		synctest.Wait()
		before, signals := c.requests(""), c.signals
		pass(time.Hour)
		synctest.Wait()
		if n := c.requests("") - before; n != 0 || c.signals != signals {
			t.Errorf("%d requests and %d signals without a watch", n, c.signals-signals)
		}
	})
}

func TestQuestionsOfWatchesAreRepeatedAfterAPauseOfTheProcess(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.set("ann watch web/pods", true)
		c.signal = func() { pass(time.Minute) }
		c.watchOf("ann")
		pass(repeatEvery + time.Minute + repeatEvery)
		synctest.Wait()
		if n := c.requests("ann watch web/pods"); n != 3 {
			t.Errorf("the question of the open watch was asked %d times, want once and after each of two repetitions", n)
		}
	})
}

func TestQuestionsOfListsAreNotRepeated(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		if _, err := c.decide(t.Context(), named("ann"), listPods("web")); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if n := c.requests(""); n != 1 || c.signals != 0 {
			t.Errorf("%d requests, %d signals", n, c.signals)
		}
	})
}

func TestWhileAWatchIsRepeatedNoCallerWaits(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.set("ann watch web/pods", true)
		c.names = []string{"web"}
		c.watchOf("ann")
		c.mu.Lock()
		c.slow = time.Hour // the cluster does not answer any more
		c.mu.Unlock()
		ended := time.Time{}
		for began := time.Now(); ended.IsZero() && time.Since(began) < time.Minute; pass(100 * time.Millisecond) {
			now := time.Now()
			if ok, _ := c.watchOf("ann"); !ok {
				ended = now
				if after := now.Sub(began); after > repeatEvery+decideTimeout+time.Second {
					t.Errorf("the watch ended after %v", after)
				}
				break
			}
			if time.Since(now) > 0 {
				t.Fatalf("a caller waited for %v", time.Since(now))
			}
		}
		if ended.IsZero() {
			t.Error("the watch did not end")
		}
	})
}

func TestReviewsThatAreClosedRefuse(t *testing.T) {
	withStandIn(t, func(t *testing.T, c *standIn) {
		c.slow = time.Hour
		waiting := make(chan error)
		go func() { _, err := c.decide(t.Context(), named("ann"), listPods("web")); waiting <- err }()
		synctest.Wait()
		go c.close()
		if err := <-waiting; err == nil {
			t.Error("a question in progress was answered")
		}
		if d, err := c.decide(t.Context(), named("bob"), listPods("web")); err == nil || d.Allowed {
			t.Error(d, err)
		}
	})
}

// pass waits in fake time.
func pass(d time.Duration) { <-time.After(d) }
