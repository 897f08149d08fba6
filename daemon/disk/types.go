package disk

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mirador-k8s/mirador/object"
	"github.com/mirador-k8s/mirador/store"
)

// Options configure a Disk. The zero value is valid: no history is dropped for its age or size, nothing is sealed.
type Options struct {
	// HistoryAge is how long history is kept. It is dropped in segments, so up to a sixteenth more may be there. 0 means
	// no limit.
	HistoryAge time.Duration
	// HistoryBytes bounds the history of each resource, in bytes on disk. 0 means no limit.
	HistoryBytes int64
	// MaxBytes bounds everything in the folder. The oldest history is dropped to stay below it; if that is not enough,
	// history pauses, and then Commit fails. 0 means no limit; another value is at least MinMaxBytes.
	MaxBytes int64
	// Key has 32 bytes and encrypts sealed resources. Without it, sealed resources cannot be opened.
	Key []byte
	// Quiet is how long nothing is compacted after Open, so that what was stored can be read sooner. 0 means that compaction
	// may begin at once.
	Quiet time.Duration
	// Retry makes Open succeed although the database cannot be opened, for example because it is damaged or the file
	// system is full. Health says why, reads and commits fail, and Run tries again.
	Retry bool
	// Logger receives what happens in the background. nil means slog.Default().
	Logger *slog.Logger
	// FS is the file system; nil means that of the operating system. Tests use one in memory that fails and crashes.
	FS vfs.FS

	now    func() time.Time // tests replace the clock
	tune   func(*engineSizes)
	noRoom func() bool // tests pause the history
}

// MinMaxBytes is the smallest MaxBytes: less would not leave room for the log and for compaction.
const MinMaxBytes = 64 << 20

// Resource names a mirrored resource of a cluster.
type Resource struct{ Cluster, Group, Version, Resource string }

// String returns the resource as cluster/resource.version.group, for messages.
func (r Resource) String() string {
	s := r.Cluster + "/" + r.Resource + "." + r.Version
	if r.Group != "" {
		s += "." + r.Group
	}
	return s
}

// ResourceOptions say how a resource is kept.
type ResourceOptions struct {
	// Fingerprint stands for everything that decides what objects look like, such as redaction rules. If it is not the
	// stored one, the resource's data is dropped, history included.
	Fingerprint string
	// History says that earlier states are kept.
	History bool
	// Sealed says that objects and their labels are encrypted. Keys, times and the resource's name are not.
	Sealed bool
}

// State is one state of an object.
type State struct {
	Key     object.Key
	Version object.Version
	UID     string
	// Size is the length of the object's JSON.
	Size int
	// Time is when the state was seen. A Disk moves it forward by some nanoseconds if another change of the resource has
	// that time or a later one.
	Time   time.Time
	Object store.PackedObject
	// Labels are the values under which Filter.Label finds the object, such as "app=web". They are stored with every
	// resource, and sealed with a sealed one.
	Labels []string
	// SameLabels says that the labels are those of the state that is stored, so that Labels is not used.
	SameLabels bool
	// LabelsUnknown says that the labels of a state of the past are not known: the object's labels have changed since.
	// Decode the object to know them. It is never set in newest states.
	LabelsUnknown bool
}

// AppendJSON appends the object's JSON to dst. An error means that the stored bytes are damaged.
func (s *State) AppendJSON(dst []byte) ([]byte, error) {
	return s.Object.Append(dst, store.PackedContext(string(s.Key), s.UID, string(s.Version)))
}

// Filter narrows a read. Empty fields match everything.
type Filter struct {
	Namespace string
	// Label is one of State.Labels. The objects that are found are a superset of those that had the label, unless the
	// resource is sealed or has no history, where the label is ignored.
	Label string
	Key   object.Key
	// Pace is called for each key of which History reads the changes. It may wait; an error ends the read. It may be nil.
	Pace func() error
}

// pace calls Pace.
func (f *Filter) pace() error {
	if f.Pace == nil {
		return nil
	}
	return f.Pace()
}

// match reports whether a key matches the filter; labels are not looked at.
func (f *Filter) match(k object.Key) bool {
	return (f.Key == "" || f.Key == k) && (f.Namespace == "" || f.Namespace == k.Namespace())
}

// Change is a state of an object in its history, or its deletion.
type Change struct {
	State
	// Deleted says that the object was deleted at Time; Version is that of the deletion, and there is no object.
	Deleted bool
}

// Gap is a time in which changes were not seen.
type Gap struct{ From, To time.Time }

// NewestState names a stored state, for a caller that compares it with its own.
type NewestState struct {
	Key     object.Key
	Version object.Version
	UID     string
}
