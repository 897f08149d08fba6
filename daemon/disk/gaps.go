package disk

import (
	"encoding/binary"
	"math"
	"time"
)

// gaps returns the gaps of a resource that have a time in common with the one between from and to.
func (v *view) gaps(from, to int64) (all []Gap, err error) {
	err = scan(v.snap, appendData(nil, v.desc.id, kindGap), func(k, value []byte) error {
		if len(k) != dataPrefix+8 || len(value) != 8 {
			return errBadRecord
		}
		begin, end := int64(binary.BigEndian.Uint64(k[dataPrefix:])), int64(binary.BigEndian.Uint64(value))
		if begin < to && from < end {
			all = append(all, Gap{instant(begin), instant(end)})
		}
		return nil
	})
	if pausing := v.progress.pausing; pausing != 0 && pausing < to {
		all = append(all, Gap{From: instant(pausing)})
	}
	return all, err
}

// gapAt returns the gap that a time is in, or nil.
func (v *view) gapAt(at int64) (*Gap, error) {
	all, err := v.gaps(at, at)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[len(all)-1], nil
}

// Gaps returns the gaps of a resource between two times, by their beginnings. A zero to means until now. The last one
// may not have ended: its To is zero.
func (d *Disk) Gaps(res Resource, from, to time.Time) ([]Gap, error) {
	v, err := d.view(res)
	if err != nil {
		return nil, err
	}
	defer v.close()
	all, err := v.gaps(nanos(from), endOf(to))
	return all, v.wrap(err)
}

// endOf returns the time at which an interval ends; the zero time means never.
func endOf(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64 - 1
	}
	return nanos(t)
}

// Begin returns the earliest moment of a resource's history; the zero time if there is none.
func (d *Disk) Begin(res Resource) (time.Time, error) {
	v, err := d.view(res)
	if err != nil {
		return time.Time{}, err
	}
	defer v.close()
	return instant(v.progress.begin), nil
}
