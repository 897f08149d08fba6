package pack

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/klauspost/compress/huff0"
)

const (
	huffChunk = 1 << 17
	huffMin   = 160 // a table takes up to 100 bytes; shorter input does not become smaller
)

// appendHuffed appends src in Huffman-coded chunks. It returns false if the result would not be smaller by at least a
// sixteenth, which is not worth the time of reading it.
func appendHuffed(dst, src []byte, s *huff0.Scratch) ([]byte, bool) {
	if len(src) < huffMin {
		return dst, false
	}
	start, limit := len(dst), len(src)-len(src)/16
	for len(src) > 0 {
		chunk := src[:min(len(src), huffChunk)]
		src = src[len(chunk):]
		dst = binary.AppendUvarint(dst, uint64(len(chunk)))
		s.Reuse = huff0.ReusePolicyNone
		coded, _, err := huff0.Compress1X(chunk, s)
		if err != nil || len(coded) >= len(chunk) {
			dst = append(binary.AppendUvarint(dst, 0), chunk...)
		} else {
			dst = append(binary.AppendUvarint(dst, uint64(len(coded))), coded...)
		}
		if len(dst)-start > limit {
			return dst[:start], false
		}
	}
	return dst, true
}

// appendUnhuffed is the inverse of appendHuffed. It decodes chunks until coded ends.
func appendUnhuffed(dst, coded []byte) ([]byte, bool) {
	s := huffScratches.Get().(*huff0.Scratch)
	defer huffScratches.Put(s)
	for len(coded) > 0 {
		length, w := binary.Uvarint(coded)
		if w <= 0 || length > huffChunk {
			return dst, false
		}
		coded = coded[w:]
		size, w := binary.Uvarint(coded)
		if w <= 0 || size > uint64(len(coded)-w) {
			return dst, false
		}
		coded = coded[w:]
		if size == 0 {
			if length > uint64(len(coded)) {
				return dst, false
			}
			dst, coded = append(dst, coded[:length]...), coded[length:]
			continue
		}
		s2, rest, err := huff0.ReadTable(coded[:size], s)
		if err != nil {
			return dst, false
		}
		at, end := len(dst), len(dst)+int(length)
		dst = slices.Grow(dst, int(length))
		out, err := s2.Decoder().Decompress1X(dst[at:at:end], rest)
		if err != nil || len(out) != int(length) {
			return dst, false
		}
		dst, coded = dst[:end], coded[size:]
	}
	return dst, true
}

var huffScratches = sync.Pool{New: func() any { return new(huff0.Scratch) }}
