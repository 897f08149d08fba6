package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mirador-k8s/mirador/daemon/disk"
	"github.com/mirador-k8s/mirador/object"
)

// Order is the order in which the newest changes of a resource in all clusters were sent to clients. The disk has it
// beside the history, so that clients which watch the resource in all clusters go on after a restart.
type Order struct {
	// Start is the version of the fleet after which the changes are known.
	Start uint64
	// Members are the clusters whose changes it has.
	Members []OrderMember
	// Changes are the changes, oldest first.
	Changes []OrderedChange
	// Unknown are the versions of which no client can have been sent everything, because the order of that time is
	// lost.
	Unknown []VersionSpan
	// Restricted are the users that were shown only a part of the resource.
	Restricted []RestrictedUser
}

// RestrictedUser is a user that was shown only a part of a resource.
type RestrictedUser struct {
	User  uint64    // a hash of its name and rights
	Since uint64    // the version of the fleet from which on it was shown this
	In    []ShownIn // sorted by cluster
}

// ShownIn stands for what is visible to a user in a cluster.
type ShownIn struct {
	Cluster     string
	Fingerprint uint64 // of the set of what is visible, and 0 for everything
}

// OrderMember is a cluster in an Order.
type OrderMember struct {
	Cluster string
	UID     string         // Cluster.UID
	From    object.Version // the version before its first change in the Order; "" if that is not known
}

// OrderedChange is a change of an object, or, if Cluster is empty, only the beginning of a new version.
type OrderedChange struct {
	Seq     uint64 // the version of the fleet
	Cluster string
	Key     object.Key
	Version object.Version // of the resource in the cluster, after the change
	Deleted bool
}

// VersionSpan are the versions of the fleet after the first and before the second.
type VersionSpan struct{ After, Before uint64 }

// Last returns the newest version in the order.
func (o *Order) Last() uint64 {
	if len(o.Changes) == 0 {
		return o.Start
	}
	return max(o.Start, o.Changes[len(o.Changes)-1].Seq)
}

// The kinds of records of an Order. A file begins with an orderHead, and then the rest comes as it happens.
const (
	orderHead    = 'h'
	orderMember  = 'm'
	orderChange  = 'c'
	orderUnknown = 'u'
	orderUser    = 'r' // a RestrictedUser
	orderWhole   = 'w' // what was known when the file was made is above
)

// orderEncoder encodes the records of one file. Clusters have numbers there.
type orderEncoder struct {
	clusters map[string]uint64
}

func (e *orderEncoder) head(gvr schema.GroupVersionResource, start uint64) []byte {
	b := binary.AppendUvarint([]byte{orderHead}, start)
	for _, s := range []string{gvr.Group, gvr.Version, gvr.Resource} {
		b = appendText(b, s)
	}
	return b
}

func (e *orderEncoder) member(m OrderMember) []byte {
	if e.clusters == nil {
		e.clusters = map[string]uint64{}
	}
	e.clusters[m.Cluster] = uint64(len(e.clusters) + 1)
	return appendText(appendText(appendText([]byte{orderMember}, m.Cluster), m.UID), string(m.From))
}

func (e *orderEncoder) change(c OrderedChange) []byte {
	b := binary.AppendUvarint([]byte{orderChange}, c.Seq)
	b = binary.AppendUvarint(b, e.clusters[c.Cluster])
	deleted := byte(0)
	if c.Deleted {
		deleted = 1
	}
	return appendText(appendText(append(b, deleted), string(c.Key)), string(c.Version))
}

func (e *orderEncoder) unknown(s VersionSpan) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{orderUnknown}, s.After), s.Before)
}

// whole encodes an order as the records that a file begins with.
func (e *orderEncoder) whole(gvr schema.GroupVersionResource, o *Order) [][]byte {
	records := [][]byte{e.head(gvr, o.Start)}
	for _, m := range o.Members {
		records = append(records, e.member(m))
	}
	for _, s := range o.Unknown {
		records = append(records, e.unknown(s))
	}
	for _, user := range o.Restricted {
		records = append(records, restrictedUser(user))
	}
	for _, c := range o.Changes {
		records = append(records, e.change(c))
	}
	return append(records, []byte{orderWhole})
}

func restrictedUser(u RestrictedUser) []byte {
	b := binary.AppendUvarint(binary.AppendUvarint([]byte{orderUser}, u.User), u.Since)
	for _, in := range u.In {
		b = binary.AppendUvarint(appendText(b, in.Cluster), in.Fingerprint)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errOrder = errors.New("the order of changes on disk is damaged")

// decodeOrder decodes the records of a file. whole is false if the file was not complete when the process ended.
func decodeOrder(records [][]byte) (gvr schema.GroupVersionResource, o *Order, whole bool, err error) {
	o = &Order{}
	var clusters []string
	for i, record := range records {
		if len(record) == 0 || (record[0] == orderHead) != (i == 0) {
			return gvr, nil, false, errOrder
		}
		d := decoder{b: record[1:]}
		switch record[0] {
		case orderHead:
			o.Start = d.number()
			gvr = schema.GroupVersionResource{Group: d.text(), Version: d.text(), Resource: d.text()}
		case orderMember:
			m := OrderMember{Cluster: d.text(), UID: d.text(), From: object.Version(d.text())}
			d.bad = d.bad || m.Cluster == ""
			clusters = append(clusters, m.Cluster)
			o.Members = append(o.Members, m)
		case orderUnknown:
			o.Unknown = append(o.Unknown, VersionSpan{d.number(), d.number()})
		case orderUser:
			u := RestrictedUser{User: d.number(), Since: d.number()}
			for !d.bad && len(d.b) > 0 {
				u.In = append(u.In, ShownIn{Cluster: d.text(), Fingerprint: d.number()})
			}
			o.Restricted = append(o.Restricted, u)
		case orderChange:
			c := OrderedChange{Seq: d.number()}
			of := d.number()
			c.Deleted = d.byte() == 1
			c.Key, c.Version = object.Key(d.text()), object.Version(d.text())
			d.bad = d.bad || of > uint64(len(clusters)) || c.Seq <= o.Last()
			if of > 0 && !d.bad {
				c.Cluster = clusters[of-1]
			}
			o.Changes = append(o.Changes, c)
		case orderWhole:
			whole = true
		default:
			return gvr, nil, false, errOrder
		}
		if d.bad || len(d.b) > 0 {
			return gvr, nil, false, errOrder
		}
	}
	return gvr, o, whole, nil
}

// orderFile returns the name of a file. Names of resources come from clusters and may have any character.
func orderFile(gvr schema.GroupVersionResource, number uint64) string {
	sum := sha256.Sum256([]byte(gvr.Group + "\x00" + gvr.Version + "\x00" + gvr.Resource))
	return fmt.Sprintf("order-%s-%d", hex.EncodeToString(sum[:12]), number)
}

// orderNumber returns the number in the name of a file of an Order.
func orderNumber(name string) (number uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, "order-")
	if !ok {
		return 0, false
	}
	_, text, ok := strings.Cut(rest, "-")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil
}

// ReadOrders returns the orders that the disk has. What cannot be read is left out: clients list again.
func (f *Fleet) ReadOrders() map[schema.GroupVersionResource]*Order {
	if f.opts.Disk == nil {
		return nil
	}
	names, err := f.opts.Disk.RecordFiles()
	if err != nil {
		f.log.Warn("fleet: watches of all clusters do not go on where they were: read the order of changes", "error", err)
	}
	all, numbers := map[schema.GroupVersionResource]*Order{}, map[schema.GroupVersionResource]uint64{}
	for _, name := range names {
		number, ok := orderNumber(name)
		if !ok {
			continue
		}
		f.orders.number = max(f.orders.number, number)
		f.orders.old = append(f.orders.old, name)
		records, err := f.opts.Disk.ReadRecords(name)
		if err != nil {
			f.log.Warn("fleet: watches of all clusters do not go on where they were", "error", err)
			continue
		}
		gvr, o, whole, err := decodeOrder(records)
		if err == nil && whole && name == orderFile(gvr, number) && number >= numbers[gvr] {
			all[gvr], numbers[gvr] = o, number
		}
	}
	return all
}

// orders writes the order of changes of each resource.
type orders struct {
	records *disk.Records // nil if nothing is written
	number  uint64        // of the newest file
	old     []string      // files of an earlier process
}

// OrderWriter writes the order of a resource's changes. A nil one writes nothing. Its methods never wait.
type OrderWriter struct {
	fleet   *Fleet
	file    *disk.RecordFile
	name    string
	encoder orderEncoder
	gvr     schema.GroupVersionResource
}

// KeepOrder begins to write an order in place of an older one. It returns nil if that of the resource is not kept.
func (f *Fleet) KeepOrder(gvr schema.GroupVersionResource) *OrderWriter {
	if f.opts.Disk == nil || withoutHistory[gvr.GroupResource()] ||
		isSecrets(gvr.GroupResource()) && !f.opts.DiskSecrets {
		return nil
	}
	return &OrderWriter{fleet: f, gvr: gvr}
}

// Set writes an order in place of what was written before.
func (w *OrderWriter) Set(o *Order) {
	if w == nil {
		return
	}
	w.fleet.mu.Lock()
	records := w.fleet.orders.records
	w.fleet.orders.number++
	number := w.fleet.orders.number
	w.fleet.mu.Unlock()
	if records == nil {
		return
	}
	before := w.name
	if w.file != nil {
		w.file.Close()
	}
	w.encoder = orderEncoder{}
	w.name = orderFile(w.gvr, number)
	w.file = records.Create(w.name, w.encoder.whole(w.gvr, o))
	w.removeOld(records)
	if before != "" {
		records.Remove(before)
	}
}

// removeOld removes the files that an earlier process wrote for the resource.
func (w *OrderWriter) removeOld(records *disk.Records) {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	prefix := strings.TrimSuffix(orderFile(w.gvr, 0), "0")
	w.fleet.orders.old = slices.DeleteFunc(w.fleet.orders.old, func(name string) bool {
		if strings.HasPrefix(name, prefix) {
			records.Remove(name)
			return true
		}
		return false
	})
}

// Add writes a change.
func (w *OrderWriter) Add(c OrderedChange) {
	if w != nil && w.file != nil {
		w.file.Append(w.encoder.change(c))
	}
}

// AddMember writes that a cluster belongs to the order from now on.
func (w *OrderWriter) AddMember(m OrderMember) {
	if w != nil && w.file != nil {
		w.file.Append(w.encoder.member(m))
	}
}

// AddRestricted writes what a user is shown from now on, in place of what was written of it before.
func (w *OrderWriter) AddRestricted(user RestrictedUser) {
	if w != nil && w.file != nil {
		w.file.Append(restrictedUser(user))
	}
}

// Failed reports whether the disk does not have the whole order, so that Set may try again.
func (w *OrderWriter) Failed() bool { return w != nil && (w.file == nil || w.file.Failed()) }

// DropOldOrders removes the orders of an earlier process that no KeepOrder has replaced.
func (f *Fleet) DropOldOrders() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.orders.records == nil {
		return
	}
	for _, name := range f.orders.old {
		f.orders.records.Remove(name)
	}
	f.orders.old = nil
}

// Drop removes what was written: the versions of the resource are not used any more.
func (w *OrderWriter) Drop() {
	if w == nil {
		return
	}
	w.fleet.mu.Lock()
	records := w.fleet.orders.records
	w.fleet.mu.Unlock()
	if records == nil {
		return
	}
	w.removeOld(records)
	if w.file != nil {
		w.file.Close()
		records.Remove(w.name)
		w.file = nil
	}
}
