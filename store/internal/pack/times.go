package pack

import (
	"encoding/binary"
	"time"
)

// times is the state of coding times, each as the difference to the one before: the times of one object are close
// together, whatever those of its siblings are.
type times struct {
	last  int64
	known bool
}

// varintAt reads a varint of exactly timeWidth bytes.
func varintAt(b []byte, at int) (seconds int64, ok bool) {
	if at < 0 || at+timeWidth > len(b) {
		return 0, false
	}
	u, w := binary.Uvarint(b[at : at+timeWidth])
	return int64(u), w == timeWidth && b[at+timeWidth-1] != 0
}

// textAt reads a time in the format timeText.
func textAt(b []byte, at int) (seconds int64, ok bool) {
	if at < 0 || at+len(timeText) > len(b) {
		return 0, false
	}
	b = b[at : at+len(timeText)]
	if b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[19] != 'Z' {
		return 0, false
	}
	year, month, day := number(b[0:4]), number(b[5:7]), number(b[8:10])
	hour, minute, second := number(b[11:13]), number(b[14:16]), number(b[17:19])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
		second < 0 || second > 59 {
		return 0, false
	}
	when := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return when.Unix(), when.Day() == day // false for the 31st of a shorter month
}

func number(b []byte) (n int) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func (m *times) appendVarint(dst []byte, end int, base []byte, cursor int, lits []byte) ([]byte, []byte, bool) {
	if !m.known {
		m.last, _ = varintAt(base, cursor)
	}
	lits, ok := m.advance(lits)
	if !ok || m.last < 1<<28 || m.last >= 1<<35 || end-len(dst) < timeWidth {
		return dst, lits, false
	}
	return binary.AppendUvarint(dst, uint64(m.last)), lits, true
}

func (m *times) appendText(dst []byte, end int, base []byte, cursor int, lits []byte) ([]byte, []byte, bool) {
	if !m.known {
		m.last, _ = textAt(base, cursor)
	}
	lits, ok := m.advance(lits)
	if !ok || m.last < firstText || m.last > lastText || end-len(dst) < len(timeText) {
		return dst, lits, false
	}
	return appendTime(dst, m.last), lits, true
}

// The first and the last second that four digits of a year can represent.
var (
	firstText = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	lastText  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

// appendTime appends seconds in the format timeText. time.Format would be a large part of the time of reading an
// object.
func appendTime(dst []byte, seconds int64) []byte {
	const day = 24 * 60 * 60
	days := seconds / day
	rest := int(seconds - days*day)
	if rest < 0 {
		days, rest = days-1, rest+day
	}
	// Years begin in March here, so that a leap day is the last day; an era has 400 years.
	days += 719468 // to 1 March of year 0
	era := days / 146097
	if days < 0 {
		era = (days - 146096) / 146097
	}
	inEra := int(days - era*146097)
	yearOfEra := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	inYear := inEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month := (5*inYear + 2) / 153
	dayOfMonth := inYear - (153*month+2)/5 + 1
	year := yearOfEra + int(era)*400
	if month < 10 {
		month += 3
	} else {
		month -= 9
		year++
	}
	hour, minute, second := rest/3600, rest/60%60, rest%60
	return append(dst,
		byte('0'+year/1000), byte('0'+year/100%10), byte('0'+year/10%10), byte('0'+year%10), '-',
		byte('0'+month/10), byte('0'+month%10), '-', byte('0'+dayOfMonth/10), byte('0'+dayOfMonth%10), 'T',
		byte('0'+hour/10), byte('0'+hour%10), ':', byte('0'+minute/10), byte('0'+minute%10), ':',
		byte('0'+second/10), byte('0'+second%10), 'Z')
}

func (m *times) advance(lits []byte) ([]byte, bool) {
	u, w := binary.Uvarint(lits)
	if w <= 0 {
		return lits, false
	}
	m.last += int64(unzigzag(u))
	m.known = true
	return lits[w:], true
}

// time emits target around i as a time if it is one and the base has a time there too.
func (d *differ) time(i int) int {
	t := d.target
	if seconds, ok := varintAt(t, i); ok {
		if was, ok := varintAt(d.base, i+d.shift); ok {
			return d.emitTime(i, i, moreVarint, seconds, was, timeWidth)
		}
	}
	// The first digit that differs may be anywhere in the text.
	if c := t[i]; c < '0' || c > '9' {
		return 0
	}
	for from := i; from >= i-d.pending && from > i-len(timeText); from-- {
		if from+len(timeText) > len(t) || t[from+4] != '-' || t[from+10] != 'T' {
			continue
		}
		if seconds, ok := textAt(t, from); ok {
			if was, ok := textAt(d.base, from+d.shift); ok {
				return d.emitTime(i, from, moreText, seconds, was, len(timeText))
			}
		}
		break
	}
	return 0
}

func (d *differ) emitTime(i, from, kind int, seconds, was int64, width int) int {
	if !d.clock.known {
		d.clock.last = was
	}
	d.before(i, from)
	d.ops = appendEdit(d.ops, editMore, kind)
	d.lits = binary.AppendUvarint(d.lits, zigzag(int(seconds-d.clock.last)))
	d.clock = times{seconds, true}
	return from + width
}
