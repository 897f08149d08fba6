package kube

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/source"
)

// without returns a text and then one character without end.
func without(end byte, before string) io.Reader {
	return io.MultiReader(strings.NewReader(before), forever(end))
}

type forever byte

func (f forever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(f)
	}
	return len(b), nil
}

func TestStreamsOfObjectsWithoutEndShareOneAllowance(t *testing.T) {
	const bytes = 4 << 20
	allowed := NewAllowance(bytes)
	endless := via(func(r *http.Request) (*http.Response, error) {
		return answer(r, 200, jsonType,
			without('x', `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"a":"`)), nil
	})
	hungry := mustRaw(t, endless, buffers(allowed))
	_, _, err := listAll(t, hungry, source.ListOptions{})
	wantReason(t, err, source.Garbled)
	if !strings.Contains(err.Error(), "4194304 bytes together") {
		t.Errorf("the error says %v", err)
	}
	if left := allowed.left.Load(); left != bytes {
		t.Errorf("%d of %d are left after the stream has ended", left, bytes)
	}

	// While one stream holds most of the allowance, another can read small objects but no large one.
	if err := allowed.take(bytes - 100<<10); err != nil {
		t.Fatal(err)
	}
	small := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}`
	if items, _, err := listAll(t, mustRaw(t, canned(jsonType, []byte(small)), buffers(allowed)),
		source.ListOptions{}); err != nil || len(items) != 1 {
		t.Errorf("%d items, %v", len(items), err)
	}
	large := strings.Replace(small, `"a"`, `"a","annotations":{"x":"`+strings.Repeat("y", 1<<20)+`"}`, 1)
	_, _, err = listAll(t, mustRaw(t, canned(jsonType, []byte(large)), buffers(allowed)), source.ListOptions{})
	wantReason(t, err, source.Garbled)
	allowed.give(bytes - 100<<10)
	if items, _, err := listAll(t, mustRaw(t, canned(jsonType, []byte(large)), buffers(allowed)),
		source.ListOptions{}); err != nil || len(items) != 1 {
		t.Errorf("%d items, %v", len(items), err)
	}
	if left := allowed.left.Load(); left != bytes {
		t.Errorf("%d of %d are left in the end", left, bytes)
	}
}
