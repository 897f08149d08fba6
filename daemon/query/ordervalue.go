package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// orderValue is a value in a form that can be compared quickly.
type orderValue struct {
	class orderClass
	// A bool has 0 or 1 in whole. A time has its seconds in whole and its nanoseconds in frac. A number is in frac; if
	// it is an integer too large to be exact there, it is also in whole.
	whole int64
	frac  float64
	text  string
}

type orderClass uint8

// The classes, in their order, except that missing values come last in both directions.
const (
	isMissingValue orderClass = iota
	isBool
	isNumber
	isTime
	isString
	isOther
)

// compare compares two values. Missing values come last in both directions.
func (v *orderValue) compare(w *orderValue, desc bool) int {
	if v.class == isMissingValue || w.class == isMissingValue {
		return cmp.Compare(missingRank(v.class), missingRank(w.class))
	}
	c := v.ascending(w)
	if desc {
		return -c
	}
	return c
}

func missingRank(c orderClass) int {
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

// exactFloats is the number up to which a float64 represents every integer.
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

// maxQuantity is the maximal length of a string that is read as a quantity. Real quantities are shorter and have at
// most two digits in the exponent, and large exponents would make parsing expensive.
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

// beginsAsNumber reports whether a string begins like a number. It is false for words, and for a single sign or dot,
// which would be parsed as zero.
func beginsAsNumber(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	s = strings.TrimPrefix(s, ".")
	return s != "" && '0' <= s[0] && s[0] <= '9'
}

// timeValue parses a time in the format of the API.
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
