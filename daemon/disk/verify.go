package disk

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Damage is something that cannot be read.
type Damage struct {
	// What names a file, or a part of a resource's data.
	What string
	// Resource is whose data it is; the zero Resource if it is not of one.
	Resource Resource
	Err      error
}

// maxDamages is how many damaged objects of one resource are listed.
const maxDamages = 10

// Verify reads everything: the sums of all files, and every stored object. Objects of sealed resources are left out if
// there is no key. progress, if it is not nil, is called with the number of bytes that were read of all. It returns what is damaged; the error says that it could not go on.
func (d *Disk) Verify(ctx context.Context, progress func(done, total int64)) (all []Damage, err error) {
	e, err := d.current()
	if err != nil {
		return nil, err
	}
	defer e.end()
	if progress == nil {
		progress = func(done, total int64) {}
	}
	if err := d.ledger.check(d.database()); err != nil {
		all = append(all, Damage{What: "the log or the manifest", Err: err})
	}
	files, err := d.verifyFiles(ctx, e, progress)
	all = append(all, files...)
	if err != nil {
		return all, fmt.Errorf("verify the data folder %s: %w", d.dir, err)
	}
	snap := e.db.NewSnapshot()
	defer snap.Close()
	err = scan(snap, []byte{spaceCluster}, func(k, v []byte) error {
		found, err := d.verifyDocuments(snap, string(k[1:]), v)
		all = append(all, found...)
		return err
	})
	if err == nil {
		err = eachResource(snap, func(res Resource, _ *descriptor) error {
			found, err := d.verifyResource(ctx, res)
			all = append(all, found...)
			return err
		})
	}
	if err != nil && ctx.Err() == nil {
		all = append(all, Damage{What: "the list of clusters and resources", Err: err})
		err = nil
	}
	if failure := e.files.failure(); failure != nil {
		return nil, fmt.Errorf("verify the data folder %s, which has failed: %w", d.dir, failure)
	}
	return all, err
}

// verifyFiles checks the sums of all blocks of all tables.
func (d *Disk) verifyFiles(ctx context.Context, e *engine, progress func(done, total int64)) (all []Damage, err error) {
	dir := d.database()
	tables, err := e.db.SSTables() // other tables are left over by a crash, and removed soon
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	var done, total int64
	for _, level := range tables {
		for i := range level {
			name := fmt.Sprintf("%06d.sst", uint64(level[i].BackingSSTNum))
			info, err := d.fs.Stat(d.fs.PathJoin(dir, name))
			if err != nil || sizes[name] != 0 {
				continue // it was removed meanwhile, or has two parts
			}
			sizes[name] = info.Size()
			total += info.Size()
		}
	}
	for name, size := range sizes {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		path := d.fs.PathJoin(dir, name)
		if err := d.verifyTable(ctx, e, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			all = append(all, Damage{What: "the file " + path, Err: err})
		}
		done += size
		progress(done, total)
	}
	return all, nil
}

// verifyTable checks the sums of all blocks of a table, past the cache.
func (d *Disk) verifyTable(ctx context.Context, e *engine, path string) (err error) {
	f, err := d.fs.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("pebble panicked: %v", r)
		}
	}()
	r, err := sstable.NewReader(ctx, readable, e.options.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// verifyDocuments decodes the documents of a cluster.
func (d *Disk) verifyDocuments(snap *pebble.Snapshot, name string, value []byte) (all []Damage, err error) {
	c, err := decodeCluster(value)
	if err != nil {
		return []Damage{{What: "the record of cluster " + name, Err: err}}, nil
	}
	names, err := documentNames(snap, c.id)
	if err != nil {
		return []Damage{{What: "the documents of cluster " + name, Err: err}}, nil
	}
	for _, document := range names {
		if _, err := readDocument(snap, c.id, document); err != nil {
			all = append(all, Damage{What: "the document " + document + " of cluster " + name, Err: err})
		}
	}
	return all, nil
}

// verifyResource decodes every object of a resource.
func (d *Disk) verifyResource(ctx context.Context, res Resource) (all []Damage, err error) {
	v, err := d.view(res)
	if errors.Is(err, errNoKey) {
		return nil, nil
	}
	if err != nil {
		return []Damage{{What: "the records of " + res.String(), Resource: res, Err: err}}, nil
	}
	defer v.close()
	n := 0
	report := func(what string, err error) {
		if n++; n <= maxDamages {
			all = append(all, Damage{What: what + " of " + res.String(), Resource: res, Err: err})
		}
	}
	var json []byte
	check := func(what, key string, r *record) error {
		if r.flags&flagDeletion != 0 {
			return ctx.Err()
		}
		s, err := v.bases.state(key, r)
		if err == nil {
			json, err = s.AppendJSON(json[:0])
		}
		if err != nil {
			report(fmt.Sprintf("%s of %s at version %s", what, key, r.version), err)
		}
		return ctx.Err()
	}
	for _, part := range []struct {
		what string
		kind byte
	}{{"the newest state", kindState}, {"the oldest state", kindCarried}, {"the history", kindHistory}} {
		err := scan(v.snap, appendData(nil, v.desc.id, part.kind), func(k, value []byte) error {
			plain, err := v.open(nil, k, value)
			var r record
			if err == nil {
				r, err = decodeRecord(plain)
			}
			key := k[dataPrefix:]
			if part.kind == kindHistory && err == nil {
				key, _, err = splitHistory(k)
			}
			if err != nil {
				report(part.what, err)
				return ctx.Err()
			}
			return check(part.what, string(key), &r)
		})
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if err != nil {
			report(part.what, err)
		}
	}
	if n > maxDamages {
		all = append(all, Damage{What: fmt.Sprintf("%d more states of %s", n-maxDamages, res), Resource: res,
			Err: errBadRecord})
	}
	return all, nil
}
