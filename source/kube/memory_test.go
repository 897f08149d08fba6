package kube

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/source"
)

func compress(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// manyPods is the response of a list of n pods of about 10 KB, made while it is
// read, so that the test itself does not hold it.
func manyPods(t testing.TB, enc encoding, n int) (body io.Reader, size int) {
	p := pod("a", "7")
	p.Annotations = map[string]string{"filling": strings.Repeat("x", 10_000)}
	one := enc.object(t, podList("42", "", p))
	two := enc.object(t, podList("42", "", p, p))
	if enc.name == "json" {
		item := two[len(one)-2 : len(two)-2] // ",{...}"
		return io.MultiReader(bytes.NewReader(one[:len(one)-2]), &repeat{b: item, n: n - 1},
			strings.NewReader("]}")), len(one) + (n-1)*len(item)
	}
	// The list's message, without its envelope, then as many items as wanted.
	list, err := podList("42", "").Marshal()
	if err != nil {
		t.Fatal(err)
	}
	with, err := podList("42", "", p).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	item := with[len(list):]
	size = len(list) + n*len(item)
	head := append([]byte("k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x12"), varint(size)...)
	return io.MultiReader(bytes.NewReader(append(head, list...)), &repeat{b: item, n: n},
		strings.NewReader("\x1a\x00\x22\x00")), size
}

func varint(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// repeat is b, n times.
type repeat struct {
	b      []byte
	n, pos int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[r.pos:])
	if r.pos += n; r.pos == len(r.b) {
		r.pos, r.n = 0, r.n-1
	}
	return n, nil
}

// TestP16_ListIsNeverHeldWhole reads a list of about 30 MB, drops what it gets
// and measures the live heap on the way: it stays at a small part of the list.
func TestP16_ListIsNeverHeldWhole(t *testing.T) {
	const n = 3_000
	for _, enc := range encodings {
		t.Run("typed "+enc.name, func(t *testing.T) {
			body, size := manyPods(t, enc, n)
			peak(t, typedPods(t, append(enc.options, answering(enc, body))...), n, size)
		})
	}
	t.Run("raw", func(t *testing.T) {
		body, size := manyPods(t, encodings[1], n)
		peak(t, mustRaw(t, answering(encodings[1], body)), n, size)
	})
	t.Run("dynamic", func(t *testing.T) {
		body, size := manyPods(t, encodings[1], n)
		peak(t, mustDynamic(t, answering(encodings[1], body)), n, size)
	})
}

func answering(enc encoding, body io.Reader) option {
	return via(func(r *http.Request) (*http.Response, error) { return answer(r, 200, enc.contentType, body), nil })
}

// heapNow is what lives on the heap.
func heapNow() uint64 {
	var m runtime.MemStats
	runtime.GC() // twice: the second collects what finalizers and pools released
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func peak[T any](t *testing.T, s *Source[T], n, size int) {
	t.Helper()
	base := heapNow()
	l, err := s.List(t.Context(), source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var batch []object.Item[T]
	var most uint64
	seen, next := 0, 0
	for {
		batch, err = l.Read(batch[:0])
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(batch); seen >= next {
			most, next = max(most, heapNow()), next+n/20
		}
	}
	if seen != n {
		t.Fatalf("read %d of %d", seen, n)
	}
	held := int64(most) - int64(base)
	t.Logf("%d items, %.1f MB on the wire, at most %.2f MB held", n, float64(size)/1e6, float64(held)/1e6)
	// Beside the stream, a source remembers strings: a number that does not grow with the list.
	if held > int64(size)/50+16*mostSlots {
		t.Errorf("%d bytes are held of a list of %d", held, size)
	}
}

// TestItemCostsFewAllocationsBesideItsObject compares with decoding alone.
func TestItemCostsFewAllocationsBesideItsObject(t *testing.T) {
	const n = 1000
	p := pod("a", "7")
	encoded, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var decoded *corev1.Pod // outlives the function, or the object would not count
	decode := testing.AllocsPerRun(100, func() {
		decoded = new(corev1.Pod)
		if err := decoded.Unmarshal(encoded); err != nil {
			t.Fatal(err)
		}
	})
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = p
	}
	perItem := func(read func()) float64 { return testing.AllocsPerRun(5, read) / n }

	body := encodeProtobuf(t, podList("42", "", pods...))
	typed := typedPods(t, canned(protobufType, body))
	var items []object.Item[*corev1.Pod]
	got := perItem(func() { items = drain(t, typed, items[:0]) })
	t.Logf("typed: %.2f allocations an item, %.0f of them the object's own", got, decode)
	if got > decode+1.5 { // its key is one more
		t.Errorf("%.2f allocations an item, of which the object needs %.0f", got, decode)
	}

	raw := mustRaw(t, canned(jsonType, encodeJSON(t, podList("42", "", pods...))))
	var kept []object.Item[*RawObject]
	got = perItem(func() { kept = drain(t, raw, kept[:0]) })
	t.Logf("raw: %.2f allocations an item", got)
	if got > 4.5 { // bytes, key, version, uid
		t.Errorf("%.2f allocations an item", got)
	}
}

func drain[T any](t *testing.T, s *Source[T], items []object.Item[T]) []object.Item[T] {
	l, err := s.List(t.Context(), source.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		if items, err = l.Read(items); err == io.EOF {
			return items
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLargeObjectDoesNotLeaveItsBufferBehind: a watch that carried one large
// object goes back to a small buffer.
func TestLargeObjectDoesNotLeaveItsBufferBehind(t *testing.T) {
	big := pod("big", "7")
	big.Annotations = map[string]string{"filling": strings.Repeat("x", 3<<20)}
	pr, pw := io.Pipe()
	s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
		return answer(r, 200, protobufType, pr), nil
	}))
	w, err := s.Watch(t.Context(), source.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	go func() {
		pw.Write(frameProtobuf(t, "ADDED", encodeProtobuf(t, big)))
		pw.Write(frameProtobuf(t, "ADDED", encodeProtobuf(t, pod("a", "8"))))
		pw.Close()
	}()
	grown := 0
	for {
		changes, err := w.Read(nil)
		if err == io.EOF {
			break
		}
		if err != nil || len(changes) != 1 {
			t.Fatal(changes, err)
		}
		grown = max(grown, len(w.(*watcher[*corev1.Pod]).in.buf))
	}
	if grown < 3<<20 {
		t.Errorf("the buffer was %d bytes: the large object did not go through it", grown)
	}
	if left := len(w.(*watcher[*corev1.Pod]).in.buf); left > keptBuffer {
		t.Errorf("%d bytes are still held", left)
	}
}

func TestEqualStringsAreOneUnlessTheReaderFindsThemItself(t *testing.T) {
	a, b := pod("a", "7"), pod("b", "8")
	for _, p := range []*corev1.Pod{a, b} {
		p.Spec.NodeName, p.Spec.SchedulerName, p.Spec.ServiceAccountName = "node-of-both", "scheduler", "account"
	}
	body := encodeProtobuf(t, podList("42", "", a, b))
	for _, c := range []struct {
		opts           source.ListOptions
		one, withBytes bool
	}{
		{opts: source.ListOptions{}, one: true},
		{opts: source.ListOptions{Shares: true}},
		{opts: source.ListOptions{Encoded: true}, withBytes: true},
	} {
		items, _, err := listAll(t, typedPods(t, canned(protobufType, body)), c.opts)
		if err != nil || len(items) != 2 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		first, second := items[0].Value.Spec.NodeName, items[1].Value.Spec.NodeName
		if first != "node-of-both" || second != first {
			t.Fatalf("the nodes are %q and %q", first, second)
		}
		same := func(of func(*corev1.Pod) string) bool {
			return unsafe.StringData(of(items[0].Value)) == unsafe.StringData(of(items[1].Value))
		}
		// Another string may take the place of one of them, depending on the hash's seed, but not of all.
		one := same(func(p *corev1.Pod) string { return p.Spec.NodeName }) ||
			same(func(p *corev1.Pod) string { return p.Spec.SchedulerName }) ||
			same(func(p *corev1.Pod) string { return p.Spec.ServiceAccountName })
		if one != c.one {
			t.Errorf("%+v: equal strings are one: %v", c.opts, one)
		}
		if withBytes := items[0].Encoded != nil; withBytes != c.withBytes {
			t.Errorf("%+v: with bytes: %v", c.opts, withBytes)
		}
	}
}
