package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/mirador-k8s/mirador/object"
)

// Keys begin with the byte of their space. doc.go has the whole layout.
const (
	spaceCounter  = 0x01 // counters of the package itself
	spaceMeta     = 0x02 // name: value of SetMeta
	spaceCluster  = 0x03 // name: clusterRecord
	spaceDocument = 0x04 // cluster id, name, 0, chunk: data
	spaceResource = 0x05 // cluster, 0, group, 0, version, 0, resource: descriptor
	spaceData     = 0x10 // resource id, kind, ...: everything of one resource
)

// Kinds of keys in spaceData.
const (
	kindBase     = 'b' // number: base
	kindDeletion = 'd' // time, key: nothing
	kindSegment  = 'g' // segment: segmentRecord
	kindHistory  = 'h' // segment, key, 0, inverted time: change
	kindGap      = 'k' // from: to
	kindLabels   = 'l' // key: time and labels of the newest state
	kindCarried  = 'o' // key: the state at the beginning of the history
	kindProgress = 'p' // nothing: progress
	kindState    = 's' // key: newest state
	kindUse      = 'u' // segment, base: nothing
	kindPosting  = 'x' // label, 0, key: time of the newest state that got the label
	kindUnlabel  = 'y' // segment, label, 0, key: time at which the key lost the label
)

// appendData begins a key of a resource's data.
func appendData(dst []byte, id uint32, kind byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(dst, spaceData), id), kind)
}

// dataPrefix is the length of what appendData appends.
const dataPrefix = 1 + 4 + 1

// allData returns the bounds of a resource's data.
func allData(id uint32) (from, to []byte) {
	from = binary.BigEndian.AppendUint32([]byte{spaceData}, id)
	return from, binary.BigEndian.AppendUint32([]byte{spaceData}, id+1)
}

// after returns the first key that does not begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

func appendSegment(dst []byte, id uint32, kind byte, segment uint32) []byte {
	return binary.BigEndian.AppendUint32(appendData(dst, id, kind), segment)
}

// segmentPrefix is the length of what appendSegment appends.
const segmentPrefix = dataPrefix + 4

// appendHistory makes the key of a change. Times are inverted so that the newest change of an object comes first.
func appendHistory(dst []byte, id, segment uint32, key string, at int64) []byte {
	dst = append(append(appendSegment(dst, id, kindHistory, segment), key...), 0)
	return binary.BigEndian.AppendUint64(dst, ^uint64(at))
}

// splitHistory returns the object's key and the time in the key of a change.
func splitHistory(k []byte) (key []byte, at int64, err error) {
	if len(k) < segmentPrefix+9 || k[len(k)-9] != 0 {
		return nil, 0, errBadKey
	}
	return k[segmentPrefix : len(k)-9], int64(^binary.BigEndian.Uint64(k[len(k)-8:])), nil
}

func appendDeletion(dst []byte, id uint32, at int64, key string) []byte {
	return append(binary.BigEndian.AppendUint64(appendData(dst, id, kindDeletion), uint64(at)), key...)
}

func appendPosting(dst []byte, id uint32, label, key string) []byte {
	return append(append(append(appendData(dst, id, kindPosting), label...), 0), key...)
}

func appendUnlabel(dst []byte, id, segment uint32, label, key string) []byte {
	return append(append(append(appendSegment(dst, id, kindUnlabel, segment), label...), 0), key...)
}

func appendBase(dst []byte, id, number uint32) []byte {
	return binary.BigEndian.AppendUint32(appendData(dst, id, kindBase), number)
}

func appendUse(dst []byte, id, segment, base uint32) []byte {
	return binary.BigEndian.AppendUint32(appendSegment(dst, id, kindUse, segment), base)
}

// ClusterMeta returns the beginning of the names of values that belong to a cluster.
func ClusterMeta(cluster string) string { return "cluster " + cluster + "/" }

func metaKey(name string) []byte    { return append([]byte{spaceMeta}, name...) }
func clusterKey(name string) []byte { return append([]byte{spaceCluster}, name...) }

// documentPrefix is what the keys of a document's chunks begin with; with name "", those of all documents.
func documentPrefix(cluster uint32, name string) []byte {
	k := binary.BigEndian.AppendUint32([]byte{spaceDocument}, cluster)
	if name != "" {
		k = append(append(k, name...), 0)
	}
	return k
}

func resourceKey(r Resource) []byte {
	return append([]byte{spaceResource}, strings.Join([]string{r.Cluster, r.Group, r.Version, r.Resource}, "\x00")...)
}

func splitResource(k []byte) (Resource, error) {
	parts := strings.Split(string(k[1:]), "\x00")
	if len(parts) != 4 {
		return Resource{}, errBadKey
	}
	return Resource{parts[0], parts[1], parts[2], parts[3]}, nil
}

// errBadKey and errBadRecord are damage that no checksum found.
var (
	errBadKey    = errors.New("a key is damaged")
	errBadRecord = errors.New("a record is damaged")
)

// checkName refuses what would break the order of keys.
func checkName(what, name string) error {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return fmt.Errorf("%s %q is empty or has a zero byte, which a name on disk must not", what, name)
	}
	return nil
}

func checkResource(r Resource) error {
	for _, part := range []struct{ what, name string }{
		{"the cluster's name", r.Cluster}, {"the version", r.Version}, {"the resource", r.Resource}} {
		if err := checkName(part.what, part.name); err != nil {
			return err
		}
	}
	if strings.IndexByte(r.Group, 0) >= 0 {
		return checkName("the group", r.Group)
	}
	return nil
}

func checkKey(k object.Key) error { return checkName("the object's key", string(k)) }
