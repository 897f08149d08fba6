package pack

// Stats are the counts of a Packer for stored objects. Objects that only snapshots hold are not counted.
type Stats struct {
	Objects     int   // packed and not released
	RawBytes    int64 // of the originals
	PackedBytes int64 // of their data
	Whole       int   // objects without a base
	Bases       int   // bases that stored objects use
	BaseBytes   int64 // memory of these bases
	IndexBytes  int64 // to find bases, estimated
	CacheBytes  int64 // of bases kept readable
	Refreshed   int64 // number of times that an object became a base although a similar base existed
}

// Bytes returns the memory of all objects.
func (s Stats) Bytes() int64 {
	return s.PackedBytes + s.BaseBytes + s.IndexBytes + s.CacheBytes
}

// Stats returns the counts of p.
func (p *Packer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.IndexBytes = int64(len(p.index)) * indexCost
	s.CacheBytes = p.cache.bytes()
	return s
}
