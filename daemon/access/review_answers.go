package access

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// repeatEvery is how often the questions of open watches are repeated.
	repeatEvery = 5 * time.Second
	// unaskedRepeats is how often a question is repeated without anybody asking it, until it counts as one that no open
	// watch needs. It is not a time: after a pause of the process no question has been asked for long, and the watches
	// are still open.
	unaskedRepeats = 3

	// maxAnswers and maxAnswersOfUser bound what is kept of one cluster: decisions, namespaces in sets, and as much as
	// userSize for each user.
	maxAnswers       = 1 << 18
	maxAnswersOfUser = 1 << 14
	userSize         = 16
)

// answerCache has the answers of a cluster. The lock of reviews guards it and everything in it.
type answerCache struct {
	users   map[string]*reviewedUser // by reviewKey
	size    int
	repeats int // how often the questions of watches have been repeated
}

// reviewedUser is a user whose rights a cluster was asked for.
type reviewedUser struct {
	spec      authorizationv1.SubjectAccessReviewSpec // only the user
	slots     chan struct{}                           // one for each request in progress
	decisions map[Attributes]*answer[Decision]
	sets      map[setKey]*answer[*reviewedSet]
	size      int
	asking    int // answers that are being asked for
}

// answer is the answer to one question.
type answer[T any] struct {
	of      *reviewedUser
	timeout time.Duration
	watch   bool // it is a question of watches
	// ask asks the cluster. It gets the last answer, and returns for how long the new one can be used.
	ask     func(ctx context.Context, last T) (value T, use time.Duration, err error)
	differs func(a, b T) bool
	sizeOf  func(T) int // nil: 1

	value  T     // the last answer that is not an error
	known  bool  // there is one
	err    error // of the last attempt
	until  time.Time
	asked  int           // repeats when a caller last asked
	asking chan struct{} // closed when the answer that is being asked for is there; nil if none is
	size   int           // in the cache; 0: it is not in there
}

// user returns the entry of a user.
func (c *answerCache) user(key string, u user.Info) *reviewedUser {
	of := c.users[key]
	if of == nil {
		of = &reviewedUser{slots: make(chan struct{}, reviewsOfUserAtOnce)}
		of.spec = authorizationv1.SubjectAccessReviewSpec{User: u.GetName(), Groups: u.GetGroups(), UID: u.GetUID()}
		for k, v := range u.GetExtra() {
			if k == user.CredentialIDKey {
				continue // it is different for each token of a user
			}
			if of.spec.Extra == nil {
				of.spec.Extra = map[string]authorizationv1.ExtraValue{}
			}
			of.spec.Extra[k] = v
		}
		if c.users == nil {
			c.users = map[string]*reviewedUser{}
		}
		of.clear()
		c.users[key] = of
		of.size = userSize
		c.size += userSize
	}
	return of
}

// clear forgets all answers of a user.
func (of *reviewedUser) clear() {
	for _, a := range of.decisions {
		a.size = 0
	}
	for _, a := range of.sets {
		a.size = 0
	}
	of.decisions, of.sets = map[Attributes]*answer[Decision]{}, map[setKey]*answer[*reviewedSet]{}
	of.size = 0
}

// forget forgets the answers of a user that no open watch needs: those that it needs are what ends the watch when a
// right is withdrawn. It returns their size.
func (of *reviewedUser) forget(repeats int) (freed int) {
	freed = forgetIn(of.decisions, repeats) + forgetIn(of.sets, repeats)
	of.size -= freed
	return freed
}

func forgetIn[K comparable, T any](answers map[K]*answer[T], repeats int) (freed int) {
	for key, a := range answers {
		if !a.watched(repeats) {
			freed += a.size
			a.size = 0
			delete(answers, key)
		}
	}
	return freed
}

// watched reports whether an open watch may need the answer.
func (a *answer[T]) watched(repeats int) bool { return a.watch && repeats-a.asked <= unaskedRepeats }

// resize changes the size of an answer that is in the cache or is being put into it, and forgets other answers if
// there are too many. A user with too many loses its own.
func (c *answerCache) resize(of *reviewedUser, size *int, n int) {
	of.size += n - *size
	c.size += n - *size
	*size = n
	if of.size > maxAnswersOfUser {
		c.size -= of.forget(c.repeats)
	}
	if of.size > maxAnswersOfUser { // of so many watches that each is better opened again
		c.size -= of.size - userSize
		of.clear()
		of.size = userSize
	}
	for key, other := range c.users { // in random order
		if c.size <= maxAnswers {
			return
		}
		if other != of && other.asking == 0 { // otherwise it would get more slots
			c.size -= other.forget(c.repeats)
			if len(other.decisions)+len(other.sets) == 0 {
				c.size -= other.size
				delete(c.users, key)
			}
		}
	}
}

// get returns the answer to a question, and asks the cluster if it is too old. It is called with the lock and unlocks.
func get[T any](ctx context.Context, r *reviews, a *answer[T]) (T, error) {
	now := time.Now()
	a.asked = r.answers.repeats
	if a.watch {
		select {
		case r.watched <- struct{}{}:
		default:
		}
	}
	if now.Before(a.until) {
		defer r.mu.Unlock()
		return a.now()
	}
	if a.asking == nil && a.of.asking >= questionsOfUserAtOnce {
		r.mu.Unlock()
		var none T
		return none, fmt.Errorf("cluster %q was not asked about the rights of the user: there are too many questions about "+
			"this user", r.cluster)
	}
	done := begin(r, a)
	r.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("ask cluster %q about the rights of the user: %w", r.cluster, ctx.Err())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.now()
}

// now returns the answer as it is. The lock is held.
func (a *answer[T]) now() (T, error) {
	if a.err != nil {
		var none T
		return none, a.err
	}
	return a.value, nil
}

// begin begins to ask the cluster, unless that is in progress, and returns a channel that is closed when the answer is
// there. The lock is held. The question does not end with the request that is first to ask it: others may wait for it.
func begin[T any](r *reviews, a *answer[T]) <-chan struct{} {
	if a.asking != nil {
		return a.asking
	}
	done := make(chan struct{})
	if r.closed {
		a.err = fmt.Errorf("cluster %q is leaving", r.cluster)
		close(done)
		return done
	}
	a.asking = done
	a.of.asking++
	last, began := a.value, time.Now()
	r.work.Go(func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(r.ctx, a.timeout)
		defer cancel()
		value, use, err := a.ask(ctx, last)
		r.mu.Lock()
		changed := a.set(r, value, began.Add(use), err)
		r.mu.Unlock()
		if changed && a.watch {
			r.changes.Add(1)
			r.signal()
		}
	})
	return done
}

// set stores an answer and reports whether it is another one than before. The lock is held.
func (a *answer[T]) set(r *reviews, value T, until time.Time, err error) (changed bool) {
	a.asking = nil
	a.of.asking--
	changed = a.known && (err != nil) != (a.err != nil)
	a.err = err
	if err != nil {
		a.until = time.Now().Add(failedFor)
		return changed
	}
	changed = changed || a.known && a.differs(a.value, value)
	a.value, a.known, a.until = value, true, until
	if a.sizeOf != nil && a.size > 0 {
		r.answers.resize(a.of, &a.size, a.sizeOf(value))
	}
	return changed
}

// repeat repeats the questions of open watches until the reviews are closed. After each repetition it announces a
// change, because watches then ask again, and thereby show which questions are still needed. While no watch asks, it
// does nothing.
func (r *reviews) repeat() {
	for {
		select {
		case <-r.watched:
		case <-r.ctx.Done():
			return
		}
		for {
			select {
			case <-time.After(repeatEvery):
			case <-r.ctx.Done():
				return
			}
			if !r.repeatOnce() {
				break
			}
			r.changes.Add(1)
			r.signal()
		}
	}
}

// repeatOnce begins to ask all questions of watches again, and reports whether there are any.
func (r *reviews) repeatOnce() (any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers.repeats++
	now := time.Now()
	for _, of := range r.answers.users {
		for _, a := range of.decisions {
			any = askAgain(r, a, now) || any
		}
		for _, a := range of.sets {
			any = askAgain(r, a, now) || any
		}
	}
	return any
}

// askAgain repeats a question of a watch. The last answer can be used until the next one is there, so that no caller
// has to wait. The lock is held.
func askAgain[T any](r *reviews, a *answer[T], now time.Time) bool {
	if !a.watched(r.answers.repeats) {
		return false
	}
	if a.err == nil && now.Before(a.until) {
		a.until = now.Add(a.timeout + time.Second)
	}
	begin(r, a)
	return true
}
