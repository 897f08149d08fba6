// Package disk keeps the mirror of a fleet in a folder: the newest state of every object, and earlier ones.
//
//	d, err := disk.Open(dir, disk.Options{HistoryAge: 24 * time.Hour, MaxBytes: 10 << 30})
//	go d.Run(ctx)
//	b := d.NewBatch()
//	b.SetCluster("eu", uid)
//	err = b.Open(pods, disk.ResourceOptions{Fingerprint: rules, History: true})
//	b.Put(pods, state)
//	b.Reach(pods, version, now)
//	err = b.Commit()
//	past, err := d.At(pods, now.Add(-15*time.Minute), disk.Filter{Label: "app=web"})
//	for state, err := range past.States() { … }
//
// What it promises:
//
//   - A batch is written as a whole or not at all. When Commit returns nil, the batch survives kill -9 and the loss
//     of power. After a crash, the folder has the state after some prefix of the batches, at least up to the last one
//     that was acknowledged.
//   - Nothing false is returned. All that is read is checked by sums; damage is an error that says what is damaged.
//     What was acknowledged and is cut off at the end of a log is damage, too, and not an older state.
//   - The process goes on. A full, failing or hanging disk makes Commit fail or wait, and Health says why. A failure
//     after which it is open what is on disk stops all changes on disk; reads and commits fail until Run has opened
//     the database again, which then has the state before or after the batch that failed.
//   - MaxBytes is never exceeded, not for a moment: the write that would exceed it fails. Before that, the oldest
//     history is dropped, then history pauses (a gap), and then Commit fails.
//   - History is exact. At returns, for each object, its newest state that is not newer than the moment. Times when
//     changes were not seen are gaps, and what is answered inside one says so. What was dropped is an error, with the
//     earliest moment that is left.
//   - What is sealed is in no file in clear text: objects, their bases and labels. Keys, times, documents and the
//     names of clusters and resources are not sealed.
//   - The folder has mode 0700 and its files 0600; one process at a time can open it. A folder of another format is
//     upgraded or refused, and then not changed.
//   - Goroutines end: those of the database with Close, those of Run when it returns. Close waits for reads that have
//     begun, and for a disk that hangs.
//
// # Files
//
//	format   the version of this layout and that of packed objects
//	lock     locked while a process has the folder open
//	ledger   length and sum of what was synced of each log and manifest; losing it loses only the check
//	db/      Pebble: logs, tables and manifests
//
// Pebble's sums find damaged blocks of tables. They do not tell the end of a log that a crash has cut off from damage
// in it, which is what the ledger is for.
//
// # Keys
//
// Integers are big-endian. A resource has a number, and gets another one when its data is dropped, so that nothing of
// the old data can be read as new. Everything of a resource is below its number, by kind:
//
//	01 name                               counters: the last numbers of clusters and resources
//	02 name                               a value of SetMeta
//	03 cluster                            UID, number, when something of it was written last
//	04 cluster's number, name, 0, chunk   a part of a document, compressed
//	05 cluster, 0, group, 0, version, 0, resource
//	                                      the resource's number, fingerprint and options
//	10 resource's number, kind, ...
//	   p                                  progress: version reached, times, number of objects
//	   s key                              the newest state of an object
//	   l key                              its labels, and since when they are these
//	   b number                           a base: what packed objects are differences to
//	   h segment, key, 0, inverted time   a change: a state or a deletion, the newest of an object first
//	   g segment                          a segment: its start, number of changes and bytes
//	   u segment, base                    the segment uses the base
//	   o key                              the state of an object before the first segment
//	   d time, key                        a deletion
//	   x label, 0, key                    the object has the label, or had it
//	   y segment, label, 0, key           when it lost it
//	   k from                             a gap, and its end
//
// The history of a resource is cut into segments by time and size, and dropped by segments: two or three ranges of
// keys, so that whole tables go. Before that, the last state in the segment of each object is carried over to kind o,
// because later moments need it. A state that is still the newest one is in kind s as well as in the history: reading
// a moment goes through kind s, and only for what has changed since does it look into the segments.
//
// Objects keep the packed form of their store. Their bases are stored once per resource. A base goes when nothing
// uses it: no newest or carried state, no segment and no other base.
//
// # Pebble
//
// Pebble ends the process when its log or manifest cannot be written. The file system below it, in files.go, keeps it
// from that: after the first such failure nothing is changed on disk, all operations seem to succeed, and the engine
// is replaced. Sealing is done per value, below Pebble's compression: a sealed resource takes more space.
package disk
