package query

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/mirador-k8s/mirador/store"
)

// heldList is an unfinished list. It does not change once it is held.
type heldList[T any] struct {
	user        string
	fingerprint [sha256.Size]byte
	views       []View[T]
	begun       time.Time
	sorted      []place[T] // all items, if the list has an order
	total       *int       // how many items there are, if that is known
	counted     bool
	onDrop      func() // Request.OnDrop
}

// place is one item of a sorted list.
type place[T any] struct {
	view  int
	rank  int
	entry *store.Entry[T]
}

// Bounds of what is held besides the number and age of the lists.
const (
	// maxPositions is how many places of sorted lists are held in total, 24 bytes each.
	maxPositions = 2 << 20
	// keptPages is how many of its last pages a list can repeat, for clients that lost an answer and send the same token
	// again.
	keptPages = 16
)

// listID is the random ID of a held list.
type listID [16]byte

// held is a list and where its pages begin.
type held[T any] struct {
	id     listID
	list   *heldList[T]
	marks  [keptPages]position // the beginning of page n is at n % keptPages
	pages  uint32
	at     *list.Element // in pages.oldest
	ofUser *list.Element // in the lists of its user
}

// holder is a user with unfinished lists.
type holder struct {
	lists  *list.List // of *held[T], the oldest first
	places int
}

// pages holds the unfinished lists.
type pages[T any] struct {
	max int
	age time.Duration

	mu     sync.Mutex
	byID   map[listID]*held[T]
	oldest *list.List // of *held[T]
	users  map[string]*holder
	places int
	timer  *time.Timer // runs while a list is held, so that lists expire without another request
}

func newPages[T any](limit int, age time.Duration) *pages[T] {
	return &pages[T]{max: limit, age: age, byID: make(map[listID]*held[T]), oldest: list.New(),
		users: make(map[string]*holder)}
}

func (p *pages[T]) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byID)
}

// keep records where the next page of a list begins, holds the list if it is not held yet, and returns the token of
// that page.
func (p *pages[T]) keep(h *held[T], l *heldList[T], next position) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h == nil {
		h = p.hold(l)
	}
	return token(h.id, h.mark(next))
}

// mark returns the number of the page that begins at a position. A repeated page gets the same number.
func (h *held[T]) mark(next position) uint32 {
	for n := h.pages; n > 0 && h.pages-n < keptPages; n-- {
		if h.marks[(n-1)%keptPages] == next {
			return n - 1
		}
	}
	h.marks[h.pages%keptPages] = next
	h.pages++
	return h.pages - 1
}

func (p *pages[T]) hold(l *heldList[T]) *held[T] {
	h := &held[T]{list: l}
	rand.Read(h.id[:]) // never fails
	p.expire()
	for len(p.byID) > 0 && (len(p.byID) >= p.max || p.places+len(l.sorted) > maxPositions) {
		p.remove(p.largest(l).lists.Front().Value.(*held[T]))
	}
	p.byID[h.id] = h
	h.at = insert(p.oldest, h)
	own := p.users[l.user]
	if own == nil {
		own = &holder{lists: list.New()}
		p.users[l.user] = own
	}
	h.ofUser = insert(own.lists, h)
	own.places += len(l.sorted)
	p.places += len(l.sorted)
	if p.timer != nil && h.at == p.oldest.Front() {
		p.timer.Stop()
		p.timer = nil
	}
	p.arm()
	return h
}

// insert adds a list to others, which are sorted by age: most often it is the youngest.
func insert[T any](all *list.List, h *held[T]) *list.Element {
	el := all.Back()
	for el != nil && el.Value.(*held[T]).list.begun.After(h.list.begun) {
		el = el.Prev()
	}
	if el == nil {
		return all.PushFront(h)
	}
	return all.InsertAfter(h, el)
}

// largest returns the user that holds the largest share, counting a list that is about to be held.
func (p *pages[T]) largest(next *heldList[T]) (most *holder) {
	var largest float64
	for user, u := range p.users {
		lists, places := u.lists.Len(), u.places
		if user == next.user {
			lists, places = lists+1, places+len(next.sorted)
		}
		share := float64(lists)/float64(p.max) + float64(places)/maxPositions
		if share > largest || share == largest && oldest[T](u).Before(oldest[T](most)) {
			most, largest = u, share
		}
	}
	return most
}

// oldest returns when the oldest list of a user was begun.
func oldest[T any](u *holder) time.Time { return u.lists.Front().Value.(*held[T]).list.begun }

var errNotHeld = fmt.Errorf("%w; start the list again, without a token", ErrExpired)

// find returns the list of a token and where its page begins.
func (p *pages[T]) find(tok string) (*held[T], position, error) {
	id, n, ok := readToken(tok)
	if !ok {
		return nil, position{}, fmt.Errorf("the continue token is not one of this server: %w", ErrInvalid)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expire()
	h := p.byID[id]
	if h == nil || n >= h.pages || h.pages-n > keptPages {
		return nil, position{}, errNotHeld
	}
	return h, h.marks[n%keptPages], nil
}

// drop removes a list that was read to its end; h may be nil.
func (p *pages[T]) drop(h *held[T]) {
	if h == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(h)
}

// dropOf removes the lists of a user that have a Request.OnDrop.
func (p *pages[T]) dropOf(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.users[user]
	if own == nil {
		return
	}
	for el := own.lists.Front(); el != nil; {
		h := el.Value.(*held[T])
		el = el.Next()
		if h.list.onDrop != nil {
			p.remove(h)
		}
	}
}

func (p *pages[T]) remove(h *held[T]) {
	if p.byID[h.id] != h {
		return
	}
	delete(p.byID, h.id)
	p.oldest.Remove(h.at)
	own := p.users[h.list.user]
	own.lists.Remove(h.ofUser)
	own.places -= len(h.list.sorted)
	if own.lists.Len() == 0 {
		delete(p.users, h.list.user)
	}
	p.places -= len(h.list.sorted)
	if h.list.onDrop != nil {
		h.list.onDrop()
	}
	if len(p.byID) == 0 && p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// expire removes lists that are too old.
func (p *pages[T]) expire() {
	now := time.Now()
	for el := p.oldest.Front(); el != nil; el = p.oldest.Front() {
		h := el.Value.(*held[T])
		if now.Sub(h.list.begun) < p.age {
			return
		}
		p.remove(h)
	}
}

// arm starts the timer for the oldest list, unless it is running.
func (p *pages[T]) arm() {
	if p.timer != nil || len(p.byID) == 0 {
		return
	}
	wait := p.age - time.Since(p.oldest.Front().Value.(*held[T]).list.begun)
	var t *time.Timer
	t = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.timer != t {
			return // it was stopped or replaced
		}
		p.timer = nil
		p.expire()
		p.arm()
	})
	p.timer = t
}

const tokenBytes = len(listID{}) + 4

// token encodes a list and a page. All tokens have the same length.
func token(id listID, page uint32) string {
	b := binary.BigEndian.AppendUint32(append(make([]byte, 0, tokenBytes), id[:]...), page)
	return base64.RawURLEncoding.EncodeToString(b)
}

func readToken(tok string) (id listID, page uint32, ok bool) {
	if len(tok) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return id, 0, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(tok)
	if err != nil {
		return id, 0, false
	}
	return listID(b[:len(id)]), binary.BigEndian.Uint32(b[len(id):]), true
}
