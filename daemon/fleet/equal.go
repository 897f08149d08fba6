package fleet

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"
)

// equalAnswers has what is equal in many clusters, because they run the same software: one copy for all of them.
type equalAnswers struct {
	documents       sharedValues[packedDocument] // by the hash of the document
	packedDocuments sharedValues[packedDocument] // by the hash of the compressed document
	groups          sharedValues[answeredGroups] // by the hash of the answer
	selections      sharedValues[selection]      // by the hash of the answers that they were made from
}

// contentHash identifies a content. What one cluster sends must not be able to replace what another one sent.
type contentHash [sha256.Size]byte

func hashOfContent(content []byte) contentHash { return sha256.Sum256(content) }

// sharedValues finds values that were made from the same content, as long as one of them is used. The values must not
// be changed.
type sharedValues[T any] struct {
	mu   sync.Mutex
	used map[contentHash]weak.Pointer[T]
}

// of returns the value that is used for a content or, if there is none, that of makeValue.
func (s *sharedValues[T]) of(content contentHash, makeValue func() (*T, error)) (*T, error) {
	s.mu.Lock()
	have := s.used[content].Value()
	s.mu.Unlock()
	if have != nil {
		return have, nil
	}
	fresh, err := makeValue() // without the lock, because it may take long
	if err != nil {
		return nil, err
	}
	return s.add(content, fresh), nil
}

// add returns the value that is used for a content. If there is none, that is fresh from now on.
func (s *sharedValues[T]) add(content contentHash, fresh *T) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.used[content].Value(); have != nil {
		return have
	}
	if s.used == nil {
		s.used = map[contentHash]weak.Pointer[T]{}
	}
	s.used[content] = weak.Make(fresh)
	runtime.AddCleanup(fresh, s.forget, content)
	return fresh
}

// forget removes a value that is not used any more.
func (s *sharedValues[T]) forget(content contentHash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[content].Value() == nil {
		delete(s.used, content)
	}
}
