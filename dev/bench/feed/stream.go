package feed

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/mirador-k8s/mirador/dev/testpods"
)

// Seed is the seed of all measured pods.
const Seed = 1

// latest is the version of the state: later than every pod's and earlier than every change's.
const latest = "999000000"

// Form is how objects are encoded.
type Form string

// The forms: protobuf for typed clients, JSON for dynamic ones.
const (
	Protobuf Form = "pb"
	JSON     Form = "json"
)

// stream is the response to a watch that starts with the state: n pods, then the bookmark that ends the state. It
// makes them while it is read.
type stream struct {
	form   Form
	pod    func(i int) *corev1.Pod
	order  func() (int, bool)
	ended  bool
	waits  []byte // encoded and not read yet
	buffer []byte
	last   string
}

// NewStream returns the watch response with n pods of a number of templates.
func NewStream(form Form, n, templates int) io.Reader {
	if templates < 1 {
		templates = testpods.DefaultTemplates
	}
	return &stream{form: form, pod: testpods.New(Seed, templates).Pod, order: listed(n, templates), last: latest}
}

// listed returns an iterator over the numbers of n pods in list order: one template after the other.
func listed(n, templates int) func() (int, bool) {
	template, i := 0, 0
	return func() (int, bool) {
		if n == 0 {
			return 0, false
		}
		for i >= n {
			template++
			if i = template; template >= templates {
				return 0, false
			}
		}
		next := i
		i += templates
		return next, true
	}
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.waits) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		s.buffer = s.buffer[:0]
		for len(s.buffer) < 64<<10 && !s.ended {
			if err := s.next(); err != nil {
				return 0, err
			}
		}
		s.waits = s.buffer
	}
	n := copy(p, s.waits)
	s.waits = s.waits[n:]
	return n, nil
}

func (s *stream) next() (err error) {
	i, ok := s.order()
	if !ok {
		s.ended = true
		end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: s.last,
			Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		s.buffer, err = appendEvent(s.buffer, s.form, watch.Bookmark, end)
		return err
	}
	s.buffer, err = appendEvent(s.buffer, s.form, watch.Added, s.pod(i))
	return err
}

// AppendChange appends the watch event of a changed pod.
func AppendChange(dst []byte, form Form, pod *corev1.Pod) ([]byte, error) {
	return appendEvent(dst, form, watch.Modified, pod)
}

func appendEvent(dst []byte, form Form, kind watch.EventType, pod *corev1.Pod) ([]byte, error) {
	if form == JSON {
		pod.APIVersion, pod.Kind = "v1", "Pod"
		object, err := json.Marshal(pod)
		if err != nil {
			return nil, fmt.Errorf("encode a pod as JSON: %w", err)
		}
		dst = append(dst, `{"type":"`+string(kind)+`","object":`...)
		dst = append(dst, object...)
		return append(dst, "}\n"...), nil
	}
	object, err := Envelope(pod)
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: object}}
	dst = binary.BigEndian.AppendUint32(dst, uint32(event.Size()))
	start := len(dst)
	dst = append(dst, make([]byte, event.Size())...)
	if _, err := event.MarshalToSizedBuffer(dst[start:]); err != nil {
		return nil, fmt.Errorf("encode a watch event: %w", err)
	}
	return dst, nil
}

// Envelope encodes a pod as API servers send and store it.
func Envelope(pod *corev1.Pod) ([]byte, error) {
	body, err := pod.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode a pod as protobuf: %w", err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: body}
	envelope, err := unknown.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode a pod's envelope: %w", err)
	}
	return append([]byte("k8s\x00"), envelope...), nil
}

// File returns the path of the response with n pods in a folder.
func File(dir string, form Form, n int) string {
	return filepath.Join(dir, fmt.Sprintf("pods-%d.%s", n, form))
}

// WriteFile makes that file, unless it exists.
func WriteFile(dir string, form Form, n int) (err error) {
	name := File(dir, form, n)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("make the input: %w", err)
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	if _, err := io.Copy(f, NewStream(form, n, 0)); err != nil {
		return fmt.Errorf("make the input %s: %w", name, err)
	}
	return nil
}
