package pack

import (
	"fmt"
	"testing"

	"github.com/klauspost/compress/dict"
	"github.com/klauspost/compress/zstd"
)

// BenchmarkCompareZstd packs the same pods with zstd: each by itself, with a trained dictionary, and with a pod of the
// same template as dictionary, which takes an encoder per template.
func BenchmarkCompareZstd(b *testing.B) {
	const templates, pods = 20, 2000
	for _, e := range []encoding{protobuf, jsonText} {
		all := e.samples(b, templates, pods)
		var inputs [][]byte
		for _, s := range all[:200] {
			inputs = append(inputs, s.enc)
		}
		trained, err := dict.BuildZstdDict(inputs,
			dict.Options{MaxDictSize: 64 << 10, HashBytes: 6, ZstdDictID: 1, ZstdLevel: zstd.SpeedDefault})
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []string{"plain", "trained", "sibling"} {
			coders := make([]zstdPair, 1)
			if way == "sibling" {
				coders = make([]zstdPair, templates)
			}
			for i := range coders {
				switch way {
				case "plain":
					coders[i] = newZstd(b, nil, nil)
				case "trained":
					coders[i] = newZstd(b, []zstd.EOption{zstd.WithEncoderDict(trained)},
						[]zstd.DOption{zstd.WithDecoderDicts(trained)})
				case "sibling":
					coders[i] = newZstd(b, []zstd.EOption{zstd.WithEncoderDictRaw(2, all[i].enc)},
						[]zstd.DOption{zstd.WithDecoderDictRaw(2, all[i].enc)})
				}
			}
			b.Run(fmt.Sprintf("%s/%s/encode", e, way), func(b *testing.B) {
				var buf []byte
				size, i := 0, templates
				for b.Loop() {
					n := templates + i%(pods-templates)
					buf = coders[n%len(coders)].enc.EncodeAll(all[n].enc, buf[:0])
					size += len(buf)
					i++
				}
				b.ReportMetric(float64(size)/float64(i-templates), "B/object")
			})
			b.Run(fmt.Sprintf("%s/%s/decode", e, way), func(b *testing.B) {
				coded := make([][]byte, pods)
				for n := templates; n < pods; n++ {
					coded[n] = coders[n%len(coders)].enc.EncodeAll(all[n].enc, nil)
				}
				var buf []byte
				var err error
				i := 0
				for b.Loop() {
					n := templates + i%(pods-templates)
					if buf, err = coders[n%len(coders)].dec.DecodeAll(coded[n], buf[:0]); err != nil || len(buf) != len(all[n].enc) {
						b.Fatal(err)
					}
					i++
				}
			})
			for _, c := range coders {
				c.enc.Close()
				c.dec.Close()
			}
		}
	}
}

type zstdPair struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newZstd(b *testing.B, eo []zstd.EOption, do []zstd.DOption) zstdPair {
	b.Helper()
	enc, err := zstd.NewWriter(nil, append(eo, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))...)
	if err != nil {
		b.Fatal(err)
	}
	dec, err := zstd.NewReader(nil, append(do, zstd.WithDecoderConcurrency(1))...)
	if err != nil {
		b.Fatal(err)
	}
	return zstdPair{enc, dec}
}
