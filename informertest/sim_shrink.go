package informertest

import "slices"

// shrink removes actions from a plan, in ever smaller pieces, as long as it still fails.
func shrink(p *plan, fails func(*plan) bool) *plan {
	best := *p
	tries := 0
	for size := (len(best.actions) + 1) / 2; size >= 1; {
		removed := false
		for at := 0; at < len(best.actions); {
			try := best
			try.actions = slices.Delete(slices.Clone(best.actions), at, min(at+size, len(best.actions)))
			if tries++; tries > 400 {
				return &best
			}
			if fails(&try) {
				best, removed = try, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed {
			break
		}
		if size = size / 2; size == 0 {
			size = 1
		}
	}
	return &best
}
