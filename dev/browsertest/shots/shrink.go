package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// shrink reencodes a picture with at most 256 colours: a page has few, and the antialiased edges of letters many that
// look alike.
func shrink(in []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	bounds := img.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[rgba(img.At(x, y))]++
		}
	}
	palette := choose(count)
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[rgba(img.At(x, y))])
		}
	}
	var buf bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&buf, out)
	return buf.Bytes(), err
}

func rgba(c color.Color) color.RGBA { return color.RGBAModel.Convert(c).(color.RGBA) }

// choose takes the most frequent colours that are not too close to one already taken, and increases the distance until
// they are few enough.
func choose(count map[color.RGBA]int) color.Palette {
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	for distance := 0; ; distance += 2 {
		var palette color.Palette
		for _, c := range all {
			if !slices.ContainsFunc(palette, func(p color.Color) bool { return near(p.(color.RGBA), c, distance) }) {
				if palette = append(palette, c); len(palette) > 256 {
					break
				}
			}
		}
		if len(palette) <= 256 {
			return palette
		}
	}
}

func near(a, b color.RGBA, distance int) bool {
	abs := func(n int) int { return max(n, -n) }
	return abs(int(a.R)-int(b.R))+abs(int(a.G)-int(b.G))+abs(int(a.B)-int(b.B)) < distance
}
