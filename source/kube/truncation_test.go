package kube

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/mirador-k8s/mirador/source"
)

// TestListCutAtAnyByteIsAnErrorNeverShort cuts a list at every byte. The
// envelope of a protobuf list goes on for a few bytes behind its last item:
// there nothing of the list is missing any more.
func TestListCutAtAnyByteIsAnErrorNeverShort(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			whole := enc.object(t, podList("42", "", pod("a", "7"), pod("b", "8")))
			tolerated := 0
			for cut := range len(whole) {
				s := typedPods(t, append(enc.options, canned(enc.contentType, whole[:cut]))...)
				items, l, err := listAll(t, s, source.ListOptions{})
				if err == nil {
					tolerated++
					if len(items) != 2 || l.Version() != "42" {
						t.Fatalf("cut at %d of %d: %d items at %q and no error", cut, len(whole), len(items), l.Version())
					}
					continue
				}
				wantReason(t, err, source.Garbled)
				if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			}
			if enc.name == "json" && tolerated > 0 || tolerated > 2 {
				t.Errorf("%d cuts went unnoticed", tolerated)
			}
		})
	}
}

func TestListOfMetadataDynamicAndRawCutAtAnyByteIsAnError(t *testing.T) {
	whole := encodeJSON(t, podList("42", "", pod("a", "7"), pod("b", "8")))
	for cut := range len(whole) {
		body := canned(jsonType, whole[:cut])
		_, _, err := listAll(t, mustMetadata(t, body), source.ListOptions{})
		wantReason(t, err, source.Garbled)
		_, _, err = listAll(t, mustDynamic(t, body), source.ListOptions{})
		wantReason(t, err, source.Garbled)
		_, _, err = listAll(t, mustRaw(t, body), source.ListOptions{})
		wantReason(t, err, source.Garbled)
	}
}

// TestWatchCutAtAnyByteGivesTheWholeEventsBeforeIt: between two events the end
// is an ordinary one, anywhere else it is an error.
func TestWatchCutAtAnyByteGivesTheWholeEventsBeforeIt(t *testing.T) {
	for _, enc := range encodings {
		t.Run(enc.name, func(t *testing.T) {
			frames := aWatch(t, enc)
			whole := join(frames)
			complete := make([]int, len(whole)+1) // events that end at or before a byte
			border := make([]bool, len(whole)+1)
			border[0] = true
			at := 0
			for i, f := range frames {
				at += len(f)
				end := at
				if enc.name == "json" { // the line's end is not part of the event
					end--
					border[end] = true
				}
				border[at] = true
				for j := end; j <= len(whole); j++ {
					complete[j] = i + 1
				}
			}
			for cut := range len(whole) + 1 {
				s := typedPods(t, append(enc.options, canned(enc.contentType, whole[:cut]))...)
				changes, err := watchAll(t, s, source.WatchOptions{})
				if len(changes) != complete[cut] {
					t.Fatalf("cut at %d: %d changes, want %d", cut, len(changes), complete[cut])
				}
				if border[cut] {
					if err != io.EOF {
						t.Fatalf("cut at %d, between events: %v", cut, err)
					}
					continue
				}
				wantReason(t, err, source.Garbled)
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			}
		})
	}
}

// TestEveryFlippedByteIsSurvived changes each byte in turn: whatever comes of
// it, reading ends, and an error has a reason.
func TestEveryFlippedByteIsSurvived(t *testing.T) {
	for _, enc := range encodings {
		list := enc.object(t, podList("42", "", pod("a", "7"), pod("b", "8")))
		watch := join(aWatch(t, enc))
		for _, flip := range []byte{0x01, 0x80} {
			for i := range list {
				b := bytes.Clone(list)
				b[i] ^= flip
				s := typedPods(t, append(enc.options, canned(enc.contentType, b))...)
				if _, _, err := listAll(t, s, source.ListOptions{}); err != nil && source.ReasonOf(err) == source.Unavailable {
					t.Fatalf("%s list, byte %d: %v", enc.name, i, err)
				}
			}
			for i := range watch {
				b := bytes.Clone(watch)
				b[i] ^= flip
				s := typedPods(t, append(enc.options, canned(enc.contentType, b))...)
				if _, err := watchAll(t, s, source.WatchOptions{}); err == nil ||
					err != io.EOF && source.ReasonOf(err) == source.Unavailable {
					t.Fatalf("%s watch, byte %d: %v", enc.name, i, err)
				}
			}
		}
	}
}
