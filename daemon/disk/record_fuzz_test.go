package disk

import (
	"bytes"
	"testing"

	"github.com/mirador-k8s/mirador/object"
)

func FuzzRecord(f *testing.F) {
	for _, r := range []record{
		{},
		{flags: flagDeletion, version: "12"},
		{flags: flagTime, time: 5, base: 300, uid: "0f0e0d0c-0000-4000-8000-00000000000a", version: "18446744073709551615", size: 9, data: "data"},
		{flags: flagTime | flagUnrecorded, uid: "not a UUID", version: "007", data: "\x00"},
		{uid: "0F0F0F0F-0000-4000-8000-000000000000", version: "+1"},
	} {
		f.Add(r.append(nil))
	}
	f.Add(appendLabels(make([]byte, 8), []string{"app=web", "", "tier=a"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeRecord(b); err == nil {
			again, err := decodeRecord(r.append(nil))
			r.flags &^= flagUIDText | flagVersionText
			again.flags &^= flagUIDText | flagVersionText
			if err != nil || again != r {
				t.Errorf("%+v becomes %+v (%v)", r, again, err)
			}
		}
		if at, labels, err := decodeLabels(b); err == nil && len(b) >= 8 {
			_, again, err := decodeLabels(appendLabels(bytes.Clone(b[:8]), labels))
			if err != nil || len(again) != len(labels) {
				t.Errorf("%d %q becomes %q (%v)", at, labels, again, err)
			}
		}
		// What follows must not panic, and must not need more memory than the input.
		_, _ = decodeBase(b)
		_, _ = decodeDescriptor(b)
		_, _ = decodeProgress(b)
		_, _ = decodeSegment(1, b)
		_, _ = decodeCluster(b)
		_, _, _ = recordTime(b)
		_, _, _ = splitHistory(b)
		if len(b) > 0 {
			_, _ = splitResource(b)
		}
	})
}

func TestRecordsComeBack(t *testing.T) {
	for _, uid := range []string{"", "0f0e0d0c-0000-4000-8000-00000000000a", "x", "00000000-0000-0000-0000-00000000000G"} {
		for _, version := range []object.Version{"", "0", "00", "1", "99999999999999999999", "abc"} {
			r := record{flags: flagTime, time: 1 << 60, base: 1<<32 - 1, uid: uid, version: version, size: 1, data: "d"}
			got, err := decodeRecord(r.append(nil))
			if got.flags = flagTime; err != nil || got != r {
				t.Errorf("%+v becomes %+v (%v)", r, got, err)
			}
		}
	}
}
