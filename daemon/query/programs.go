package query

import (
	"container/list"
	"sync"
)

// maxPrograms is how many compiled expressions are kept. A page or a script uses the same few over and over.
const maxPrograms = 256

var programs = newProgramCache(maxPrograms)

// programCache keeps the most recently used expressions.
type programCache struct {
	mu     sync.Mutex
	max    int
	byText map[string]*list.Element
	recent *list.List // of *Where, the most recently used first
}

func newProgramCache(limit int) *programCache {
	return &programCache{max: limit, byText: make(map[string]*list.Element), recent: list.New()}
}

func (c *programCache) get(text string) *Where {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byText[text]
	if el == nil {
		return nil
	}
	c.recent.MoveToFront(el)
	return el.Value.(*Where)
}

func (c *programCache) put(w *Where) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byText[w.text] != nil {
		return // compiled twice at the same time
	}
	c.byText[w.text] = c.recent.PushFront(w)
	if c.recent.Len() > c.max {
		oldest := c.recent.Back()
		delete(c.byText, c.recent.Remove(oldest).(*Where).text)
	}
}
