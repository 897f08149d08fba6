package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// orderValue is a value in the form in which it is compared.
type orderValue struct {
	class orderClass
	// whole and frac are: of a bool, 0 or 1; of a time, its seconds and nanoseconds; of a number, the
	// integer that it is, where it is one so large that a float64 blurs it, and its float64.
	whole int64
	frac  float64
	text  string
}

type orderClass uint8

// The classes, in their order; what is missing is put last whatever the direction.
const (
	isMissingValue orderClass = iota
	isBool
	isNumber
	isTime
	isString
	isOther
)

// compare puts what is missing last in both directions.
func (v *orderValue) compare(w *orderValue, desc bool) int {
	if v.class == isMissingValue || w.class == isMissingValue {
		return cmp.Compare(lateness(v.class), lateness(w.class))
	}
	c := v.ascending(w)
	if desc {
		return -c
	}
	return c
}

func lateness(c orderClass) int {
	if c == isMissingValue {
		return 1
	}
	return 0
}

func (v *orderValue) ascending(w *orderValue) int {
	if c := cmp.Compare(v.class, w.class); c != 0 {
		return c
	}
	switch v.class {
	case isNumber:
		return cmp.Or(cmp.Compare(v.frac, w.frac), cmp.Compare(v.whole, w.whole))
	case isBool, isTime:
		return cmp.Or(cmp.Compare(v.whole, w.whole), cmp.Compare(v.frac, w.frac))
	}
	return strings.Compare(v.text, w.text)
}

// orderValueOf classifies a valid value.
func orderValueOf(raw []byte) orderValue {
	switch raw[0] {
	case 'n':
		return orderValue{}
	case 'f':
		return orderValue{class: isBool}
	case 't':
		return orderValue{class: isBool, whole: 1}
	case '{', '[':
		return orderValue{class: isOther, text: string(raw)}
	case '"':
		return orderValueOfString(decodeString(raw))
	}
	n, _ := decodeNumber(raw)
	switch n := n.(type) {
	case int64:
		return integer(n)
	case float64:
		return float(n)
	}
	if raw[0] == '-' { // out of range: smaller or larger than any other
		return float(math.Inf(-1))
	}
	return float(math.Inf(1))
}

// exactFloats is up to where a float64 has every integer.
const exactFloats = 1 << 53

func integer(n int64) orderValue {
	v := orderValue{class: isNumber, frac: float64(n)}
	if math.Abs(v.frac) >= exactFloats {
		v.whole = n
	}
	return v
}

func float(f float64) orderValue {
	v := orderValue{class: isNumber, frac: f}
	switch {
	case f >= math.MaxInt64:
		v.whole = math.MaxInt64
	case f <= math.MinInt64:
		v.whole = math.MinInt64
	case math.Abs(f) >= exactFloats:
		v.whole = int64(f)
	}
	return v
}

func orderValueOfString(s string) orderValue {
	if v, ok := quantityValue(s); ok {
		return v
	}
	if v, ok := timeValue(s); ok {
		return v
	}
	return orderValue{class: isString, text: s}
}

// maxQuantity is the longest text that is taken for a quantity. Beyond it and beyond two digits of an exponent
// nobody means an amount, and large exponents would make large numbers.
const maxQuantity = 32

func quantityValue(s string) (orderValue, bool) {
	if len(s) > maxQuantity || !beginsAsNumber(s) {
		return orderValue{}, false
	}
	if e := strings.LastIndexAny(s, "eE"); e >= 0 && len(strings.TrimLeft(s[e+1:], "+-0")) > 2 {
		return orderValue{}, false
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return orderValue{}, false
	}
	if n, ok := q.AsInt64(); ok {
		return integer(n), true
	}
	f, err := strconv.ParseFloat(q.AsDec().String(), 64)
	if err != nil {
		return orderValue{}, false
	}
	return float(f), true
}

// beginsAsNumber is false for words, and for a sign or a dot alone, which would be read as zero.
func beginsAsNumber(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	s = strings.TrimPrefix(s, ".")
	return s != "" && '0' <= s[0] && s[0] <= '9'
}

// timeValue takes what the API writes for a time.
func timeValue(s string) (orderValue, bool) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[10] != 'T' {
		return orderValue{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return orderValue{}, false
	}
	return orderValue{class: isTime, whole: t.Unix(), frac: float64(t.Nanosecond())}, true
}
