package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

type guarded struct {
	Name   string
	Labels map[string]string
}

var guardedCodec = &object.Codec[*guarded]{
	Encode: func(dst []byte, g *guarded) ([]byte, error) {
		encoded, err := json.Marshal(g)
		return append(dst, encoded...), err
	},
	Decode: func(encoded []byte) (*guarded, error) {
		g := new(guarded)
		return g, json.Unmarshal(encoded, g)
	},
}

func writes(t *testing.T, layout store.Layout, misuse func(w *store.Writer[*guarded])) []store.Written {
	t.Helper()
	var got []store.Written
	w, err := store.New(store.Options[*guarded]{Layout: layout, Codec: guardedCodec,
		OnWritten: func(written store.Written) { got = append(got, written) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	for _, name := range []string{"a", "b"} {
		w.Put(object.Item[*guarded]{Key: object.Key(name), Version: "1", Owned: true,
			Value: &guarded{Name: name, Labels: map[string]string{"app": name}}})
	}
	w.Commit()
	misuse(w)
	return got
}

func changeObject(r *store.Reader[*guarded]) {
	obj, _ := r.Get("a")
	obj.Labels["app"] = "other"
}

func TestWrittenNamesTheReadersOfAnObject(t *testing.T) {
	for _, layout := range []store.Layout{store.Live, store.Shared, store.Packed} {
		t.Run(layout.String(), func(t *testing.T) {
			got := writes(t, layout, func(w *store.Writer[*guarded]) {
				changeObject(w.Reader())
				w.Reader().Get("b")
				verifyAll(w.Reader())
			})
			if len(got) != 1 || got[0].Key != "a" || got[0].Path != `Labels["app"]` {
				t.Fatalf("reported writes: %+v", got)
			}
			if by := strings.Join(got[0].By, ";"); !strings.Contains(by, "store_test.changeObject (guard_test.go:") {
				t.Errorf("the function that wrote is not among %q", by)
			}
		})
	}
}

func TestWriteIsReportedWhenTheObjectIsReplacedOrRead(t *testing.T) {
	for what, then := range map[string]func(w *store.Writer[*guarded]){
		"read": func(w *store.Writer[*guarded]) { w.Reader().Get("a") },
		"replaced": func(w *store.Writer[*guarded]) {
			w.Begin()
			w.Put(object.Item[*guarded]{Key: "a", Value: &guarded{}})
			w.Commit()
		},
		"deleted": func(w *store.Writer[*guarded]) { w.Begin(); w.Delete("a", "2"); w.Commit() },
	} {
		t.Run(what, func(t *testing.T) {
			got := writes(t, store.Live, func(w *store.Writer[*guarded]) {
				changeObject(w.Reader())
				then(w)
			})
			if len(got) != 1 || !strings.Contains(got[0].String(), "changeObject") {
				t.Errorf("reported writes: %v", got)
			}
		})
	}
}

func TestReadsAreNotReportedAsWrites(t *testing.T) {
	for _, layout := range []store.Layout{store.Live, store.Shared, store.Packed} {
		got := writes(t, layout, func(w *store.Writer[*guarded]) {
			for range 3 {
				for _, obj := range w.Reader().Snapshot().All() {
					_ = obj.Labels["app"]
				}
			}
			verifyAll(w.Reader())
		})
		if len(got) > 0 {
			t.Errorf("%s: reported writes: %v", layout, got)
		}
	}
}

func TestWhatCannotBePackedIsKeptLiveAndCounted(t *testing.T) {
	var reported []string
	w, err := store.New(store.Options[*guarded]{Layout: store.Packed,
		OnError: func(_ object.Key, _ string, err error) { reported = append(reported, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	for _, name := range []string{"a", "b"} {
		w.Put(object.Item[*guarded]{Key: object.Key(name), Value: &guarded{Name: name}})
	}
	w.Commit()
	if got, ok := w.Reader().Get("a"); !ok || got.Name != "a" {
		t.Errorf("Get = %v, %v", got, ok)
	}
	if l := w.Reader().Layout(); l.Layout != store.Packed || l.KeptLive != 2 {
		t.Errorf("layout %+v", l)
	}
	if len(reported) != 1 || !strings.Contains(reported[0], "Options.Codec") {
		t.Errorf("reported %q, want one error that says what to do", reported)
	}
}

func TestUnknownLayoutIsAnError(t *testing.T) {
	if _, err := store.New(store.Options[int]{Layout: 7}); err == nil || !strings.Contains(err.Error(), "Layout(7)") {
		t.Errorf("err = %v", err)
	}
}

func verifyAll[T any](r *store.Reader[T]) {
	for e := range r.Snapshot().Entries() {
		e.Verify()
	}
}
