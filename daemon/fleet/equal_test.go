package fleet

import (
	"errors"
	"runtime"
	"testing"
	"time"
)

// There is one value for each content while it is used, and none afterwards.
func TestEqualValuesAreKeptOnceAndOnlyWhileTheyAreUsed(t *testing.T) {
	var s sharedValues[[2]*int]
	made := 0
	of := func(content string) *[2]*int {
		v, err := s.of(hashOfContent([]byte(content)), func() (*[2]*int, error) { made++; return new([2]*int), nil })
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, again, b := of("a"), of("a"), of("b")
	if a != again || a == b || made != 2 {
		t.Errorf("a is shared: %t, b is another: %t, %d were made", a == again, a != b, made)
	}
	if s.add(hashOfContent([]byte("a")), new([2]*int)) != a {
		t.Error("a value that is used was replaced")
	}
	failed := errors.New("failed")
	if _, err := s.of(hashOfContent([]byte("c")), func() (*[2]*int, error) { return nil, failed }); err != failed {
		t.Errorf("the error of making a value is %v", err)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(again)
	runtime.KeepAlive(b)
	left := -1
	for deadline := time.Now().Add(10 * time.Second); left != 0 && time.Now().Before(deadline); runtime.Gosched() {
		runtime.GC() // cleanups run on a goroutine of the runtime
		s.mu.Lock()
		left = len(s.used)
		s.mu.Unlock()
	}
	if left != 0 {
		t.Errorf("%d values are kept that nobody uses", left)
	}
}
