//go:build !race

package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestP15_EveryByteStringIsUnpackedUnchanged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	text := func(n int) []byte {
		var b bytes.Buffer
		for b.Len() < n {
			fmt.Fprintf(&b, "key%d: value %x\n", random.IntN(1000), random.Uint32())
		}
		return b.Bytes()[:n]
	}
	cases := map[string][]byte{
		"empty":            {},
		"one byte":         {7},
		"seven bytes":      []byte("1234567"),
		"zeros":            make([]byte, 10_000),
		"4 MB of zeros":    make([]byte, 4<<20),
		"4 MB of noise":    noise(4 << 20),
		"4 MB of text":     text(4 << 20),
		"4 MB of hex":      []byte(hex.EncodeToString(noise(2 << 20))),
		"noise":            noise(5000),
		"text":             text(5000),
		"hex":              []byte(strings.Repeat("0123456789abcdef", 400)),
		"one long hex run": bytes.Repeat([]byte("a"), 1<<20),
		"digits":           []byte(strings.Repeat("10.244.17.3:8080 ", 300)),
		"times":            []byte(strings.Repeat(`"2026-02-28T23:59:59Z","2024-02-29T00:00:00Z",`, 50)),
		"times that are no": []byte(strings.Repeat(`"2026-02-30T23:59:59Z","0000-00-00T00:00:00Z","9999-12-31T24:00:60Z"`,
			50)),
		"varints":      bytes.Repeat(binary.AppendUvarint(nil, 1<<34), 200),
		"long varints": bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0x00, 0x80, 0x80, 0x80, 0x80, 0x7f}, 200),
	}
	p := New()
	for name, enc := range cases {
		t.Run(name, func(t *testing.T) {
			before := p.Stats().PackedBytes
			k := p.packed(enc, "a context")
			unpacksTo(t, k, sample{enc, "a context"})
			if k.size() > len(enc)+headerSize {
				t.Errorf("%d bytes were packed into %d", len(enc), k.size())
			}
			if got := p.Stats().PackedBytes - before; got != int64(k.size()) {
				t.Errorf("%d bytes counted, want %d", got, k.size())
			}
			// Similar objects: one byte changed, some inserted, some removed, halves exchanged.
			for i := range 40 {
				other := bytes.Clone(enc)
				at := random.IntN(len(other) + 1)
				switch {
				case len(other) == 0 || i%4 == 1:
					other = append(other[:at:at], append(noise(1+i), enc[at:]...)...)
				case i%4 == 0:
					other[at%len(other)] ^= 1 << (i % 8)
				case i%4 == 2:
					other = append(other[:at/2], enc[at:]...)
				default:
					other = append(bytes.Clone(enc[at:]), enc[:at]...)
				}
				if len(enc) > 1<<20 && i > 0 {
					break
				}
				unpacksTo(t, p.packed(other, "b context"), sample{other, "b context"})
			}
		})
	}
}

func TestTimesAreWrittenAsTimeFormatWritesThem(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		at := firstText + random.Int64N(lastText-firstText+1)
		want := time.Unix(at, 0).UTC().Format(timeText)
		if got := string(appendTime(nil, at)); got != want {
			t.Fatalf("%d is written %s, want %s", at, got, want)
		}
		if back, ok := textAt([]byte(want), 0); !ok || back != at {
			t.Fatalf("%s is read as %d, want %d", want, back, at)
		}
	}
}

// Objects are packed and released in random order, and those that are not released can be unpacked at any time.
func TestP15_ObjectsAreUnpackedUnchangedWhileBasesChange(t *testing.T) {
	for _, e := range []encoding{protobuf, jsonText} {
		all := e.samples(t, 30, 600)
		for seed := range uint64(3) {
			random := rand.New(rand.NewPCG(seed, 5))
			p := New()
			live := map[int]Packed{}
			for step := range 3000 {
				// The number of objects grows and shrinks, so that bases lose their last user.
				filling := step/500%2 == 0
				i := random.IntN(len(all))
				if k, ok := live[i]; ok && (!filling || random.IntN(4) == 0) {
					p.Release(k)
					delete(live, i)
					unpacksTo(t, k, all[i])
				} else if !ok && (filling || random.IntN(4) == 0) {
					live[i] = p.packed(all[i].enc, all[i].ctx)
				}
				if step%250 == 0 {
					for i, k := range live {
						unpacksTo(t, k, all[i])
					}
				}
			}
			for _, k := range live {
				p.Release(k)
			}
			s := p.Stats()
			if s.Objects != 0 || s.RawBytes != 0 || s.PackedBytes != 0 || s.Bases != 0 || s.BaseBytes != 0 ||
				s.IndexBytes != 0 || s.Whole != 0 || s.CacheBytes != 0 {
				t.Fatalf("%s, seed %d: all objects are released, but the statistics are %+v", e, seed, s)
			}
		}
	}
}

// The input is a script: each step is one byte for the operation, and most read objects from the rest of the input.
func FuzzP15_PackedBytesAreUnpackedUnchanged(f *testing.F) {
	pods := protobuf.samples(f, 2, 4)
	f.Add([]byte{}, "context")
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "")
	f.Add(append([]byte{0xff, 0x11, 0x22, 0x33}, pods[0].enc...), pods[0].ctx)
	f.Add(bytes.Repeat([]byte("2026-01-01T00:00:00Z 0123456789abcdef0123456789abcdef"), 20), "0123456789abcdef")
	f.Fuzz(func(t *testing.T, script []byte, ctx string) {
		p := New()
		type stored struct {
			k Packed
			s sample
		}
		var live []stored
		last := append(bytes.Clone(pods[1].enc), script...)
		for n := 0; len(script) > 0 && n < 24 && len(last) < 1<<16; n++ {
			op, arg := script[0], 0
			script = script[1:]
			if len(script) > 0 {
				arg = int(script[0])
			}
			switch op % 5 {
			case 0: // what is left of the input
				last = bytes.Clone(script)
			case 1: // a byte changed
				last = bytes.Clone(last)
				if len(last) > 0 {
					last[arg*len(last)/256] ^= op | 1
				}
			case 2: // something put into the last
				at := arg * len(last) / 256
				last = append(last[:at:at], append(bytes.Clone(script[:min(len(script), int(op))]), last[at:]...)...)
			case 3: // a pod
				last = pods[arg%len(pods)].enc
			case 4:
				if len(live) > 0 {
					i := arg % len(live)
					p.Release(live[i].k)
					unpacksTo(t, live[i].k, live[i].s)
					live = append(live[:i], live[i+1:]...)
				}
				continue
			}
			live = append(live, stored{p.packed(last, ctx), sample{last, ctx}})
		}
		for _, l := range live {
			unpacksTo(t, l.k, l.s)
		}
	})
}
